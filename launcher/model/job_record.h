// What happens in a job beside its events, for who records it: with these and the events everything that was
// decided can be decided again (launcher/record).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <variant>
#include <vector>

#include "launcher/model/job_action.h"

namespace fleetrun::launcher {

/// The reducer was told `event` and answered with `actions`.
struct Decided {
  Event event;
  std::vector<Action> actions;
};
/// fleetrun sent signal `number` to a process that lives.
struct SignalSent {
  std::size_t index = 0;
  int number = 0;
};
/// The job ends although `pid` lives, which SIGKILL does not end.
struct LeftAlive {
  pid_t pid = -1;
};
/// The plan was made anew for a further attempt.
struct Replanned {};

using JobRecord = std::variant<Decided, SignalSent, LeftAlive, Replanned>;

}  // namespace fleetrun::launcher
