// Shows logs that lie in LOG_DIR/POD: of a past job, or of one that runs, as they grow.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/logs/log_catalog.h"

namespace fleetrun::launcher {

struct LogSpec {
  std::string pod_directory;       // LOG_DIR/POD
  std::vector<std::string> roles;  // none: all
  std::vector<int> ranks;          // none: all
  std::optional<int> attempt;      // unset: the newest that a process has a log of
  bool all_attempts = false;
  std::optional<int> lines;  // the last ones; unset: all
  bool follow = false;       // until the job is over
  int output = 1;            // borrowed
  bool colour = false;       // of the names
};

/// The logs that `spec` is about, of each role and rank, in the order of attempts.
std::map<std::pair<std::string, int>, std::vector<FoundLog>> wanted_logs(const LogSpec& spec);

/// Shows one process after the other, or follows them together. Blocks as long as the reader does.
/// Throws: Error(host) when there is no such log.
void show_logs(LogSpec spec);

}  // namespace fleetrun::launcher
