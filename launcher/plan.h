// The plan of a job: everything that will be started, decided. After it nobody decides anything.
//
// make_plan() is pure. A plan can be compared, printed (cli/render: text, shell; plan_json: JSON) and run
// (launcher/supervisor); `--dry-run` and a real run have the same one.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/host.h"
#include "launcher/job_config.h"
#include "launcher/program.h"
#include "runtime/base/environ.h"
#include "runtime/base/identity.h"

namespace fleetrun::launcher {

struct ProcessSpec {
  Identity identity;
  std::string program;  // the file to execute
  std::vector<std::string> argv;
  Environ environment;             // over what fleetrun itself has
  std::vector<std::string> unset;  // of what fleetrun itself has
  std::string cwd;
  std::string log_name;         // "workerlog.0", in the plan's log_dir
  std::string log_alias;        // another name of the same file: "default.abcdef.trainer.0.log"
  std::vector<Endpoint> ports;  // held for it until it starts

  bool operator==(const ProcessSpec&) const = default;
};

struct Plan {
  Mode mode = Mode::collective;
  std::string job_id, pod_name;
  std::string log_dir;        // absolute
  std::string log_dir_shown;  // as the user wrote it
  bool log_overwrite = false;
  std::chrono::milliseconds ready_timeout{}, grace{};
  std::vector<ProcessSpec> processes;  // servers, then trainers: also the order of starting

  bool operator==(const Plan&) const = default;
};

/// Pure. Throws: Error(config) when the facts do not fit the configuration.
Plan make_plan(const JobConfig& config, const Program& program, const HostFacts& facts);

// The two modes, each in a file of its own. They fill `plan.processes` with identities, logs and ports.
void plan_collective(const JobConfig& config, const HostFacts& facts, Plan& plan);
void plan_ps(const JobConfig& config, const HostFacts& facts, Plan& plan);

/// The processes of `role`, as indices into plan.processes.
std::vector<std::size_t> processes_of(const Plan& plan, Role role);

}  // namespace fleetrun::launcher
