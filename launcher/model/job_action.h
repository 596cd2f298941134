// What happens to the processes of a job (Event), and what is done about it (Action): launcher/job/job_state
// turns the one into the other, launcher/run/supervisor tells the first and does the second.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/model/job_event.h"
#include "launcher/model/restart_policy.h"
#include "runtime/base/exit_reason.h"

namespace fleetrun::launcher {

struct Exited {
  std::size_t index = 0;
  ExitReason reason;
};
struct NotStarted {
  std::size_t index = 0;
  std::string stage;
  int error = 0;
};
struct Started {
  std::size_t index = 0;
};
struct RoleReady {
  std::size_t role = 0;
};
/// The role is not ready, but nobody waits longer for it.
struct ReadyTimeout {
  std::size_t role = 0;
};
struct GraceElapsed {
  std::size_t role = 0;
};
/// The answer to ExplainFailure: the process that failed first, and how.
struct Explained {
  std::size_t index = 0;
  FailureRecord record;
  bool port_clash = false;  // one of its ports was taken by somebody else
};
/// Nothing is left below init, or (index) of that process.
struct Swept {
  std::optional<std::size_t> index;
};
struct BackoffElapsed {
  std::optional<std::size_t> index;
};
/// These do not get on, and have to be killed for it.
struct Hung {
  std::vector<std::size_t> indices;
};
/// What a process says of its part in the ranks' generations (launcher/job/replacements.h).
struct MemberSaid {
  enum class What { waits, trains, leaves };
  std::size_t index = 0;
  What what = What::waits;
  int generation = 0;      // of leaves
  std::int64_t step = -1;  // the same
};
/// From now on so many processes of the role are to run. Those that are not needed end by themselves.
struct CountWanted {
  std::size_t role = 0;
  std::size_t count = 0;
};
struct StopAsked {
  int signal = 0;      // that fleetrun got
  bool drain = false;  // and the job is to be started again later
};
struct TimedOut {};
struct PodLost {};  // fleetrun-init is gone

// What the other hosts say, in a job of several.

/// What runs has to end: there will be another world.
struct WorldEnds {
  std::string why;
  bool at_once = false;  // killed: this host was cut off, and the others may go on without it
};
/// Starts the next attempt, after what WorldEnds asked for was reported.
struct WorldBegins {
  int attempt = 0;
};
/// How the job ends is known: what runs has to end.
struct JobDecided {
  std::string why;  // empty: all is well
};

using Event = std::variant<Started, Exited, NotStarted, RoleReady, ReadyTimeout, GraceElapsed, Explained,
                           Swept, BackoffElapsed, Hung, MemberSaid, StopAsked, TimedOut, PodLost, WorldEnds,
                           WorldBegins, JobDecided, CountWanted>;

/// A new attempt of the whole group begins: ports, logs and plan are made anew before its first StartProcess.
struct PrepareAttempt {
  int attempt = 0;
};
struct StartProcess {
  std::size_t index = 0;
  int attempt = 0;
};
struct AwaitRole {
  std::size_t role = 0;
};
struct AskToStop {
  std::size_t index = 0;
};
struct KillProcess {
  std::size_t index = 0;
};
struct ArmGrace {
  std::size_t role = 0;
};
struct KillPod {};
/// Wants Explained. `alone`: this process only, the others go on.
struct ExplainFailure {
  std::size_t index = 0;
  bool alone = false;
};
struct Sweep {
  std::optional<std::size_t> index;
};
struct Rest {
  std::optional<std::size_t> index;
  std::chrono::milliseconds backoff{};
};
/// For the other hosts: this process has failed, and why is not known yet.
struct ReportFailing {
  std::size_t index = 0;
};
/// For the other hosts: why it failed.
struct ReportFailure {
  Explained explained;
};
/// For the other hosts: nothing runs here, and nothing is left of what ran.
struct ReportDrained {};
/// For the other hosts: the work of this host is done.
struct ReportDone {};
/// To be told to the observers.
struct Tell {
  JobEvent event;
};
/// Everything has ended: what is left below init is killed, and the job is over.
struct EndJob {};

using Action = std::variant<PrepareAttempt, StartProcess, AwaitRole, AskToStop, KillProcess, ArmGrace,
                            KillPod, ExplainFailure, Sweep, Rest, ReportFailing, ReportFailure, ReportDrained,
                            ReportDone, Tell, EndJob>;

/// "start 0 (attempt 1)": for the log at level debug, and for tests.
std::string to_string(const Action& action);

}  // namespace fleetrun::launcher
