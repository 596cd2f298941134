// What the planner has to know about this machine. launcher/host/probe_host looks.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/model/devices.h"
#include "launcher/model/topology.h"
#include "runtime/base/endpoint.h"

namespace fleetrun::launcher {

struct HostFacts {
  std::string pod_name;           // six random letters, as Paddle's
  std::string working_directory;  // absolute
  std::string host_name;          // as the machine calls itself
  DeviceList devices;
  CpuFacts cpus;
  std::optional<Topology> topology;  // only where processes are going to be bound
  std::vector<std::string> notes;    // what the user should know

  // Endpoints of this host with leased ports, as many as the config asks for and the user has not named.
  EndpointList servers, trainers;
  EndpointList standbys;  // where servers take others' places, of several hosts with --ps_replicas: PodOffer
  std::map<std::string, EndpointList, std::less<>> endpoints;  // of a job file's other roles
  Endpoint rendezvous;  // the store of a collective or rpc job, Gloo's store of a ps job

  bool own_servers = false;  // the script is known to run fleetrun's own servers, which share their leases

  std::string compat_directory;  // empty without --compat
  std::string python_directory;  // holds `python` for the children, made for this job; empty when not needed
  std::string base_path;         // PATH of fleetrun itself
  std::string base_python_path;  // PYTHONPATH of fleetrun itself
  bool has_omp_num_threads = false, has_cpu_num = false;
  bool has_nccl_error_handling = false;
  bool is_in_job = false;  // a process of another job started fleetrun
  // NAME=VALUE that keeps what Gloo and NCCL open by themselves on the network of this host's address; only
  // among several hosts, and only what the user has not said.
  std::vector<std::string> socket_interfaces;

  bool operator==(const HostFacts&) const = default;
};

}  // namespace fleetrun::launcher
