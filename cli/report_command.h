// `fleetrun report [JOB]` packs what is known of a job into one file, and `fleetrun replay FILE` goes through
// that job again.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

int run_report_command(const std::vector<std::string>& arguments, const Environ& environment);

/// 0: the same decisions, verdict and screen as then; 1: others.
int run_replay_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
