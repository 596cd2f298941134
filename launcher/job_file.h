// A job file: several roles, each with its processes. `fleetrun job.toml`, `fleetrun job.json`.
//
//   max_restart = 2                      # any flag by its long name; a flag on the command line wins
//   log_dir = "log"
//
//   [[roles]]
//   name = "server"                      # 1 to 32 letters, digits, '_' or '-'; by it logs, flags and people call it
//   kind = "server"                      # server, trainer or plain (default)
//   count = 2                            # processes; default: as many as devices, or 1
//   script = "train.py"                  # as the command line runs a script: a .py by Python, others directly
//   args = ["--lr", "0.1"]
//
//   [[roles]]
//   name = "trainer"
//   kind = "trainer"
//   count = 4
//   script = "train.py"
//   after = ["server"]                   # starts when these are ready; a job's trainers wait for its servers anyway
//   devices = [0, 1, 2, 3]               # as --devices, only for this role: one each, all for one that is alone
//   restart = "group"                    # nobody, process or group; default as on the command line
//   grace = 10                           # seconds, or "500ms"
//   stop_signal = "INT"                  # default TERM
//   environment = {EPOCHS = "3"}         # over what fleetrun itself has
//   cwd = "work"                         # where they run, and what a relative script is relative to
//
//   [[roles]]
//   name = "evaluator"
//   command = ["./evaluate", "--all"]    # a program and its arguments, instead of script and args
//   serves = true                        # nobody waits for it: it is ended when the others have ended well
//   ready = {log = "listening on .*"}    # or {port = true}, {port = 8000}, {port = "HOST:PORT"}, {descriptor = true}
//
// In JSON the same keys are in one object: {"log_dir": "log", "roles": [{"name": …}, …]}.
//
// kind = "server" and "trainer" get the variables of Paddle (and torchrun) as the processes of --server_num and
// --trainer_num (with servers) or --nproc_per_node (without) do; there may be one role of each. kind = "plain" gets the
// FLEETRUN_ variables alone, and endpoints (FLEETRUN_ENDPOINTS) where it is ready by its own port. A server is ready by
// its port and serves, unless the file says otherwise. A descriptor is FLEETRUN_READY_FD: a line written there says
// ready. Relative paths begin where fleetrun runs.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/readiness_rule.h"
#include "launcher/restart_policy.h"

namespace fleetrun::launcher {

enum class RoleKind { plain, trainer, server };

struct JobFileRole {
  std::string name;
  RoleKind kind = RoleKind::plain;
  std::optional<int> count;       // as many as devices, or 1
  std::string script;             // or the command's program
  std::vector<std::string> args;  // of either
  bool is_command = false;        // executed directly, whatever its name
  std::map<std::string, std::string, std::less<>> environment;
  std::optional<std::vector<std::string>> devices;
  std::string cwd;  // empty: where fleetrun runs
  std::optional<RestartScope> restart;
  std::optional<std::chrono::milliseconds> grace;
  std::optional<int> stop_signal;
  std::optional<Readiness> ready;
  std::vector<std::string> after;  // names of roles
  std::optional<bool> serves;
  std::string where;  // "job.toml:12", for messages

  bool operator==(const JobFileRole&) const = default;
};

struct JobFileSetting {
  std::string text;   // as a flag would have it
  std::string where;  // "log_dir at job.toml:2"
  bool operator==(const JobFileSetting&) const = default;
};

struct JobFile {
  std::map<std::string, JobFileSetting, std::less<>> settings;  // by key of launcher/settings
  std::vector<JobFileRole> roles;                               // in the file's order

  bool operator==(const JobFile&) const = default;
};

/// Whether `script` names a job file: it ends in .json or .toml.
bool is_job_file(std::string_view script) noexcept;

/// Pure. `name` is the file's, for messages; its ending says which language it is.
/// Throws: Error(config) that names what is wrong and where (FILE:LINE for TOML, FILE: KEY.PATH for JSON).
JobFile parse_job_file(const std::string& text, const std::string& name);

/// Throws: Error(config) when it cannot be read, and as parse_job_file() does.
JobFile read_job_file(const std::string& path);

}  // namespace fleetrun::launcher
