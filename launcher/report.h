// The outcome of a job: its exit status, and in words what happened first. Pure.
#pragma once

#include <optional>
#include <string>

#include "launcher/job_state.h"
#include "launcher/plan.h"

namespace fleetrun::launcher {

struct Report {
  int exit_status = 0;
  std::optional<std::size_t> failed;  // the process that failed first
  std::string cause;                  // "trainer 1 was killed by SIGKILL"; empty when all is well
  std::string hint;
  int shown_code = 0;  // of the failed process, as the LAUNCH lines show it: negative for a signal

  bool operator==(const Report&) const = default;
};

Report make_report(const JobState& state, const Plan& plan);

}  // namespace fleetrun::launcher
