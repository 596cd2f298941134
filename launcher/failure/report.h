// The outcome of a job: its exit status, and in words what happened first and what followed. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/job/job_history.h"
#include "launcher/job/job_state.h"
#include "launcher/model/plan.h"
#include "launcher/model/world.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher {

enum class Outcome {
  completed,
  failed,     // a process failed, or could not be started, or fleetrun-init was lost
  stopped,    // fleetrun got a signal, or was asked to stop
  timed_out,  // --timeout
  refused,    // fleetrun itself could not go on
};

/// "completed", "failed", …: as verdict.json names it.
std::string_view to_string(Outcome outcome) noexcept;

/// Processes that ended alike after (or, where the root was slow to die, before) the first failure.
struct Followers {
  std::string said;    // "exited with 1"; of those that ended as they were told the status: "ended with 143"
  bool asked = false;  // fleetrun had told them to stop
  std::vector<std::string> names;
  std::int64_t first_ns = 0, last_ns = 0;  // after the first failure's death; negative: before

  bool operator==(const Followers&) const = default;
};

/// The process that failed first, in the last attempt.
struct FirstFailure {
  std::size_t index = 0;
  std::string name, role;
  int rank = 0;
  pid_t pid = -1;
  int attempt = 0;
  Cause cause;
  std::string log;            // as messages show it
  std::int64_t at = 0;        // CLOCK_MONOTONIC, nanoseconds
  std::int64_t after_ns = 0;  // since the job's first process started
  std::vector<Followers> followers;
};

struct Report {
  Outcome outcome = Outcome::completed;
  int exit_status = 0;
  bool own_status = false;            // fleetrun's own, not a process's
  std::optional<std::size_t> failed;  // the process that failed first
  std::string cause;                  // "trainer 1 was killed by SIGKILL"; empty when all is well
  std::string hint;
  int shown_code = 0;  // of the failed process, as the LAUNCH lines show it: negative for a signal
  std::optional<FirstFailure> first;
};

/// `history` is that of the whole job.
Report make_report(const JobState& state, const Plan& plan, const JobHistory& history);

/// How the job ended: `end`, as the hosts of the job agreed on it, counts more than what happened here.
struct Conclusion {
  Report report;
  std::optional<std::string> screen;  // of the host whose failure decided; nullopt: this host's own
};
Conclusion conclude(const JobState& state, const Plan& plan, const JobHistory& history,
                    const std::optional<JobEnd>& end);

/// The outcome when fleetrun itself could not go on.
Report refusal(const Error& error);

}  // namespace fleetrun::launcher
