// The log files of a pod: one per process and attempt, opened before the attempt starts.
//
//   LOG_DIR/POD/ATTEMPT/workerlog.0     the file, made anew with mode 0600 in directories with mode 0700
//   LOG_DIR/workerlog.0                 hard links to the newest attempt's (symbolic links where those
//   LOG_DIR/JOB.POD.trainer.0.log       cannot be made), replaced by rename
//
// A host that was lost and comes back to the same attempt of its job writes on where it was.
//
// So a second run in the same directory neither mixes with the first nor destroys it. Everything is made
// relative to open directories that belong to this user or root, never through a symbolic link in them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "launcher/model/plan.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

struct LogFile {
  std::string path;  // absolute
  std::string
      shown;        // as messages name it: "log/workerlog.0", or "log/POD/0/workerlog.0" where that is not it
  UniqueFd fd;      // open for appending
  off_t start = 0;  // where this attempt's output begins
  UniqueFd out, err;               // what the process has as descriptors 1 and 2, where these are not `fd`
  std::string out_path, err_path;  // the files behind them; empty: none
  int attempt = 0;
  std::string lost = {};  // the end of what did not fit into it, where that is known
};

/// What the user should know although the job goes on.
using LogWarning = std::function<void(const std::string& text)>;

/// Opens the logs of the processes `indices` for `attempt`, in that order, and gives them their plain names.
/// A log that cannot be made is refused in attempt 0; later the process writes to /dev/null, with a warning.
/// Throws: Error(host) that names the directory or file and the reason, for attempt 0.
std::vector<LogFile> open_attempt_logs(const Plan& plan, int attempt, std::span<const std::size_t> indices,
                                       const LogWarning& warn);

/// The logs of all processes for attempt 0.
std::vector<LogFile> open_first_logs(const Plan& plan, const LogWarning& warn);

/// LOG_DIR/POD/ATTEMPT, absolute.
std::string attempt_directory(const Plan& plan, int attempt);

/// LOG_DIR/POD, made where it is missing, for the files that lie beside the attempts.
/// Throws: Error(host) that names the directory and the reason.
UniqueFd open_pod_directory(const Plan& plan);

/// The end of what was written to the log: whole lines where possible, at most `max_bytes`.
std::string last_lines(const LogFile& log, std::size_t max_bytes);

}  // namespace fleetrun::launcher
