// A job file: several roles, each with its processes. `fleetrun job.toml`, `fleetrun job.json`.
//
//   max_restart = 2                      # any flag by its long name; a flag on the command line wins
//   log_dir = "log"
//
//   [[roles]]
//   name = "server"               # 1 to 32 letters, digits, '_' or '-'; by it logs, flags and people call it
//   kind = "server"               # server, trainer or plain (default)
//   count = 2                     # processes; default: as many as devices, or 1
//   script = "train.py"           # as the command line runs a script: a .py by Python, others directly
//   args = ["--lr", "0.1"]
//
//   [[roles]]
//   name = "trainer"
//   kind = "trainer"
//   count = 4
//   script = "train.py"
//   after = ["server"]            # starts when these are ready; a job's trainers wait for its servers anyway
//   devices = [0, 1, 2, 3]        # as --devices, only for this role: one each, all for one that is alone
//   restart = "group"             # nobody, process or group; default as on the command line
//   grace = 10                    # seconds, or "500ms"
//   stop_signal = "INT"           # default TERM
//   environment = {EPOCHS = "3"}  # over what fleetrun itself has
//   cwd = "work"                  # where they run, and what a relative script is relative to
//
//   [[roles]]
//   name = "evaluator"
//   command = ["./evaluate", "--all"]  # a program and its arguments, instead of script and args
//   serves = true                      # nobody waits for it: it is ended when the others have ended well
//   ready = {log = "listening on .*"}  # or {port = true}, {port = 8000}, {port = "HOST:PORT"},
//                                      # {descriptor = true}
//
// In JSON the same keys are in one object: {"log_dir": "log", "roles": [{"name": …}, …]}.
//
// kind = "server" and "trainer" get the variables of Paddle (and torchrun) as the processes of --server_num
// and --trainer_num (with servers) or --nproc_per_node (without) do; there may be one role of each. kind =
// "plain" gets the FLEETRUN_ variables alone, and endpoints (FLEETRUN_ENDPOINTS) where it is ready by its own
// port. A server is ready by its port and serves, unless the file says otherwise. A descriptor is
// FLEETRUN_READY_FD: a line written there says ready. Relative paths begin where fleetrun runs.
#pragma once

#include <string>
#include <string_view>

#include "launcher/model/job_file.h"

namespace fleetrun::launcher {

/// Whether `script` names a job file: it ends in .json or .toml.
bool is_job_file(std::string_view script) noexcept;

/// Pure. `name` is the file's, for messages; its ending says which language it is.
/// Throws: Error(config) that names what is wrong and where (FILE:LINE for TOML, FILE: KEY.PATH for JSON).
JobFile parse_job_file(const std::string& text, const std::string& name);

/// Throws: Error(config) when it cannot be read, and as parse_job_file() does.
JobFile read_job_file(const std::string& path);

}  // namespace fleetrun::launcher
