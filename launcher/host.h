// What the planner has to know about this machine, as a value; and the one function that looks at the machine
// for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/job_config.h"
#include "launcher/port_lease.h"
#include "launcher/program.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

struct HostFacts {
  std::string pod_name;              // six random letters, as Paddle's
  std::string working_directory;     // absolute
  std::vector<std::string> devices;  // visible, in their order; a process is told indices into this list
  std::string devices_source;        // "CUDA_VISIBLE_DEVICES (=0,1)", "/dev/nvidia*"

  // Endpoints with leased ports, as many as the config asks for and the user has not named.
  std::vector<Endpoint> servers, trainers;
  Endpoint meeting;  // PADDLE_MASTER of a collective job, Gloo's store of a ps job

  std::string compat_directory;  // empty without --compat
  std::string python_directory;  // holds `python` for the children, made for this job; empty when not needed
  std::string base_path;         // PATH of fleetrun itself
  std::string base_python_path;  // PYTHONPATH of fleetrun itself
  bool has_omp_num_threads = false, has_cpu_num = false;

  bool operator==(const HostFacts&) const = default;
};

/// Looks at the machine. `leases` holds every port that the job will use when it returns.
/// Throws: Error(host) for a port in use, an address that is not ours, devices that are not there.
HostFacts probe_host(const JobConfig& config, const Program& program, const Environ& environ,
                     PortLeases& leases);

/// "CUDA_VISIBLE_DEVICES" text → tokens; the list ends at the first "-1", as CUDA reads it. Pure.
std::vector<std::string> parse_visible_devices(const std::string& text);

/// How many trainers a collective job starts on this host, and with which devices (empty: on the CPU). Pure.
/// Throws: Error(host) when devices were asked for that are not visible.
struct DevicePlan {
  int trainers = 1;
  std::vector<std::string> indices;  // into the visible devices
};
DevicePlan plan_devices(const JobConfig& config, const std::vector<std::string>& visible,
                        const std::string& source);

}  // namespace fleetrun::launcher
