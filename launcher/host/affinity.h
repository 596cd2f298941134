// Which cores and which memory each process of a pod is bound to (--bind). Pure.
//
//   none   nothing is bound
//   numa   every process to all cores of one memory node and to its memory; the processes are dealt out in
//          proportion to the nodes' cores, neighbours to the same node
//   core   every process to as many cores as every other, of one node where they fit
//   auto   numa where the machine has several nodes and the pod several processes; else none
//
// A process with a device goes to the device's node first. The CPUs that share a core (SMT) stay together.
// Where there are more processes than cores, `core` lets them share, and says so.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "launcher/model/binding.h"
#include "launcher/model/topology.h"

namespace fleetrun::launcher {

/// Whether processes are going to be bound, by what is known without reading the topology.
bool binds(Bind spec, const CpuFacts& cpus, std::size_t processes) noexcept;

/// The topology as far as it may be used, for the devices at these PCI addresses. Looks at the machine.
/// Throws: Error(host), as read_topology() does.
Topology topology_for_binding(const CpuFacts& cpus, const std::vector<std::string>& pci);

/// "cpu 3" for each CPU of the cores: what --bind=core holds of this host. Pure.
std::set<std::string> core_keys(const Topology& topology);

/// Without the cores of which another job holds a CPU. Pure.
Topology without_held(Topology topology, const std::map<std::string, std::string>& held);

/// `devices[i]` holds the PCI addresses of process i's devices.
Bindings bind_processes(Bind spec, const Topology& topology,
                        const std::vector<std::vector<std::string>>& devices);

/// Threads that one process may keep busy: its share of the cores, at least 1.
int threads_per_process(int cores, std::size_t processes) noexcept;

}  // namespace fleetrun::launcher
