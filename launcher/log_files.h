// The log files of a pod: one per process, opened before anything starts.
//
// Files are made with mode 0600, never through a symbolic link, and appended to unless the user wants them
// anew. Each has a second name, as the Fleet documentation calls it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "launcher/plan.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

struct LogFile {
  std::string path;   // absolute
  std::string shown;  // as messages name it: "log/workerlog.0"
  UniqueFd fd;        // open for appending
  off_t start = 0;    // where this run's output begins
};

/// Makes plan.log_dir with its parents and opens the log of each process, in the plan's order.
/// Throws: Error(host) that names the directory or file and the reason.
std::vector<LogFile> open_log_files(const Plan& plan);

/// The end of what this run wrote: whole lines where possible, at most `most_bytes`.
std::string last_lines(const LogFile& log, std::size_t most_bytes);

}  // namespace fleetrun::launcher
