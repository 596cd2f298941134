// The cores and memory nodes of a machine, as values.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace fleetrun::launcher {

/// What may be used here, which an affinity mask, a cpuset or a CPU quota
/// of a cgroup makes less than the machine.
struct CpuFacts {
  std::vector<int> allowed;  // CPUs, ascending
  int cores = 1;             // physical ones among them, at most what the CPU quota pays for
  int nodes = 1;             // memory nodes of the machine
  bool operator==(const CpuFacts&) const = default;
};

struct Core {
  std::vector<int> cpus;  // that share it (SMT), ascending
  int node = 0;
  bool operator==(const Core&) const = default;
};

struct Topology {
  std::vector<Core> cores;                  // in the machine's order: neighbours share caches
  std::map<std::string, int> device_nodes;  // PCI address → memory node, where it is known
  bool operator==(const Topology&) const = default;
};

}  // namespace fleetrun::launcher
