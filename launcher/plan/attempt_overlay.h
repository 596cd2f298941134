// The variables of a process that its start decides, over those that stand in the plan.
// With the plan they are all that fleetrun gives: nothing else writes the environment of a process. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launcher/model/plan.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

/// Decided once, before the first process starts.
struct RunValues {
  std::string run;                // unlike that of any other run
  std::string secret_file;        // of the job's secret; empty: nobody gets one
  std::string metrics_directory;  // where servers write their metrics; empty: nowhere
};

struct Attempt {
  int number = 0;                     // of the process
  int group_number = 0;               // of those that are started again together
  std::optional<int> served_in = {};  // the last group in which its role was ready
};

/// What --dry-run shows where no value can be known before the start.
constexpr std::string_view kKnownAtStart = "(known at start)";

/// `run`: nullopt before it is decided; what it would say is then kKnownAtStart.
Environ attempt_overlay(const Plan& plan, const ProcessSpec& process, const std::optional<RunValues>& run,
                        const Attempt& attempt);

/// The plan with the overlay of its first attempt in each environment, for those who read plans.
Plan as_first_started(Plan plan);

/// Whether others than fleetrun can give the process this variable of its environment: its value is known,
/// and no descriptor has to be open for it.
bool is_given_by_anybody(const ProcessSpec& process, const std::string& name);

}  // namespace fleetrun::launcher
