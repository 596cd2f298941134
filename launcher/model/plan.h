// The plan of a job: everything that will be started, decided. After it nobody decides anything.
//
// A plan can be compared, printed (cli/render: text, shell; launcher/plan/plan_json: JSON) and run
// (launcher/run/supervisor); `--dry-run` and a real run have the same one. launcher/plan/make_plan makes it.
#pragma once

#include <signal.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/model/readiness_rule.h"
#include "launcher/model/restart_policy.h"
#include "launcher/model/torchrun.h"
#include "runtime/base/endpoint.h"
#include "runtime/base/environ.h"
#include "runtime/base/identity.h"

namespace fleetrun::launcher {

struct RolePlan {
  std::string name;     // "trainer", "server", or the job file's own
  bool serves = false;  // nobody waits for it: it ends with the others
  RestartScope restart = RestartScope::nobody;
  std::chrono::milliseconds grace{};
  int stop_signal = SIGTERM;
  Readiness ready;
  std::vector<std::size_t> after;  // roles that are ready before this one starts
  /// Its processes stand by: each may become one of this role that has failed (--on_failure=replace).
  std::optional<std::size_t> stands_by_for = {};
  /// So many of its processes are started, the first ones; the others when they are wanted (CountWanted).
  std::optional<std::size_t> wanted = {};

  bool operator==(const RolePlan&) const = default;
};

/// Variables that name an open descriptor of the process: where it says that it is ready,
/// where it says how far it is, where it reads about the hosts of its job, and about those that take the
/// place of others.
constexpr std::string_view kReadyVariable = "FLEETRUN_READY_FD", kHeartbeatVariable = "FLEETRUN_HEARTBEAT_FD",
                           kWorldVariable = "FLEETRUN_WORLD_FD", kMemberVariable = "FLEETRUN_MEMBER_FD";

/// A descriptor that a process has beside its standard ones. `variable` stands in its environment too.
struct NamedDescriptor {
  std::string variable;
  int number = -1;  // in the process
  bool operator==(const NamedDescriptor&) const = default;
};

struct ProcessSpec {
  std::size_t role = 0;  // in Plan::roles
  std::string name;      // "trainer 1": how people are told about it
  Identity identity;
  std::string program;  // the file to execute
  std::vector<std::string> argv;
  Environ environment;             // over what fleetrun itself has
  std::vector<std::string> unset;  // of what fleetrun itself has
  std::vector<NamedDescriptor> descriptors;
  std::string cwd;
  std::string log_name;                    // "workerlog.0", in the plan's log_dir
  std::string log_alias;                   // another name of the same file: "default.abcdef.trainer.0.log"
  std::optional<OutputPlan> output;        // where its output goes instead of the log
  std::vector<Endpoint> ports;             // held for it until it starts
  std::vector<Endpoint> own_ports;         // held as long as the job, and handed over
  std::vector<std::string> device_places;  // PCI addresses of its devices, where they are known
  std::vector<int> cpus, memory_nodes;     // that it is bound to; empty: as fleetrun itself

  bool operator==(const ProcessSpec&) const = default;
};

/// A file that has what was too long for the environment (launcher/plan/large_environment).
struct BackupFile {
  std::string path, text;
  bool operator==(const BackupFile&) const = default;
};

struct Plan {
  Mode mode = Mode::collective;
  std::string job_id, pod_name;
  std::string log_dir;        // absolute
  std::string log_dir_shown;  // as the user wrote it
  bool log_overwrite = false;
  bool has_secret = false;  // its processes are handed one
  std::chrono::milliseconds ready_timeout{};
  std::optional<std::chrono::milliseconds> timeout;  // of the whole job
  std::string on_event;                              // the user's command; in no record: it may have secrets
  RestartRules restart;
  std::vector<RolePlan> roles;
  std::optional<BackupFile> backup;
  std::vector<ProcessSpec> processes;  // by role; also the order of starting
  std::vector<std::string> notes;      // what the user should know before they start

  bool operator==(const Plan&) const = default;
};

/// The role of each process.
std::vector<std::size_t> roles_of(const Plan& plan);

/// The processes of a role, as indices into plan.processes.
std::vector<std::size_t> processes_of(const Plan& plan, std::size_t role);

/// The role whose processes stand by, if there is one.
std::optional<std::size_t> standby_role(const std::vector<RolePlan>& roles);

}  // namespace fleetrun::launcher
