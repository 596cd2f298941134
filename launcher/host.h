// What the planner has to know about this machine, as a value; and the one function that looks at the machine
// for it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cluster/world.h"
#include "launcher/devices.h"
#include "launcher/job_config.h"
#include "launcher/port_lease.h"
#include "launcher/program.h"
#include "launcher/topology.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

struct HostFacts {
  std::string pod_name;           // six random letters, as Paddle's
  std::string working_directory;  // absolute
  DeviceList devices;
  CpuFacts cpus;
  std::optional<Topology> topology;  // only where processes are going to be bound

  // Endpoints of this host with leased ports, as many as the config asks for and the user has not named.
  EndpointList servers, trainers;
  std::map<std::string, EndpointList, std::less<>> endpoints;  // of a job file's other roles
  Endpoint meeting;  // the store of a collective or rpc job, Gloo's store of a ps job

  // In a job of several hosts: everybody, and which of them this host is. What is above is this host's own.
  std::optional<World> world;
  std::size_t node_rank = 0;

  bool own_servers = false;  // the script is known to run fleetrun's own servers, which share their leases

  std::string compat_directory;  // empty without --compat
  std::string python_directory;  // holds `python` for the children, made for this job; empty when not needed
  std::string base_path;         // PATH of fleetrun itself
  std::string base_python_path;  // PYTHONPATH of fleetrun itself
  bool has_omp_num_threads = false, has_cpu_num = false;
  bool has_nccl_error_handling = false;
  // NAME=VALUE that keeps what Gloo and NCCL open by themselves on the network of this host's address; only among
  // several hosts, and only what the user has not said.
  std::vector<std::string> socket_interfaces;

  bool operator==(const HostFacts&) const = default;
};

/// Looks at the machine. `leases` holds every port that the job will use when it returns.
/// Throws: Error(host) for a port in use, an address that is not ours, devices that are not there.
HostFacts probe_host(const JobConfig& config, const std::vector<Program>& programs, const Environ& environ,
                     PortLeases& leases);

/// Leases ports anew for another start of the job, because one of the old ones was taken before its process bound it:
/// chosen ports are others then, and those that the user named stay. No process of the job may be alive.
/// make_plan() of the result is the plan of that start.
/// Throws: Error(host) as probe_host() does.
HostFacts renew_ports(const JobConfig& config, HostFacts facts, PortLeases& leases);

/// The network interface that has this address; empty where none has it: a name, or one of the loopback's others.
std::string interface_of(const std::string& address);

/// What the other hosts' plans need of this host.
PodOffer offer_of(const JobConfig& config, const HostFacts& facts);

/// Whether a Python program imports the package fleetrun by itself: a line "import fleetrun…" or "from fleetrun…".
/// Pure.
bool imports_fleetrun(const std::string& program_text);

/// The devices of a collective job's trainers. Pure.
/// Throws: Error(host), as plan_devices() does.
DevicePlan device_plan(const JobConfig& config, const HostFacts& facts);

}  // namespace fleetrun::launcher
