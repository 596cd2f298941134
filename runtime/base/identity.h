// Who a process is within its job: its role, its rank, how many others there are, and where everybody
// listens.
//
// The launcher decides it (launcher/plan/make_plan), hands it over in environment variables
// (runtime/base/env_contract), and the training process reads it back from there. It is a plain value; equal
// identities are equal in every field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/endpoint.h"

namespace fleetrun {

/// What kind of job it is: `collective` and `rpc` have trainers only, `ps` has servers and trainers, and a
/// job file may give a process a role of its `own`, which only the FLEETRUN_ variables tell of.
enum class Mode { collective, ps, rpc, own };
enum class Role { trainer, server };

std::string_view to_string(Mode mode) noexcept;
std::string_view to_string(Role role) noexcept;

/// How the trainers of a Paddle job find each other through Gloo. Only parameter-server jobs carry it.
struct GlooSettings {
  std::string with_gloo = "1";  // "0" off, "1" trainers only, "2" servers too
  Endpoint http;                // served by server 0
  std::string path;             // a path nobody else uses; not created

  bool operator==(const GlooSettings&) const = default;
};

/// What torchrun tells its processes beside rank and size. Only collective jobs carry it.
struct TorchSettings {
  std::string role_name = "default";  // --role
  std::string run_id = "default";
  std::string signals = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
  int max_restarts = 0;

  bool operator==(const TorchSettings&) const = default;
};

/// The world of a job of several hosts, as its launchers have agreed on it. Jobs on one host have none.
struct WorldTag {
  int host_rank = 0, hosts = 1;
  std::uint64_t generation = 0;  // grows with each change of the world
  std::string run, hash;         // of this run of the job; over all that the launchers agree on

  bool operator==(const WorldTag&) const = default;
};

struct Identity {
  Mode mode = Mode::collective;
  Role role = Role::trainer;
  std::string own_name;          // of a job file's role; empty: as `role` is called
  int rank = 0;                  // within the role, over the whole job
  int size = 1;                  // processes of a role of its own; the other modes count their endpoints
  int local_rank = 0;            // within the role, on this host
  int local_size = 1;            // trainers of this host; collective jobs only
  std::optional<int> hosts = 1;  // not told to jobs with user-written endpoint lists
  std::optional<WorldTag> world;

  EndpointList servers;   // by rank
  EndpointList trainers;  // by rank; of a role of its own: its processes, or nothing
  Endpoint master;        // collective and rpc jobs: rank 0's store
  GlooSettings gloo;      // parameter-server jobs
  TorchSettings torch;    // collective jobs

  std::vector<std::string> devices;  // indices into the visible devices; empty: runs on the CPU
  bool on_xpus = false;              // the devices are Kunlun XPUs, not GPUs
  std::string auto_cluster = "0";

  std::string job_id = "default";
  std::string pod_name;
  std::string log_dir;  // absolute

  bool operator==(const Identity&) const = default;
};

/// Where this process itself listens: its entry of `servers` or `trainers`.
const Endpoint& self_endpoint(const Identity& identity);

/// "trainer", "server", or a job file's own.
std::string role_name(const Identity& identity);

/// Processes of its role, over the whole job.
int role_size(const Identity& identity) noexcept;

/// "trainer 1"
std::string process_name(Role role, int rank);
std::string process_name(const Identity& identity);

}  // namespace fleetrun
