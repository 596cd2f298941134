// What happens in a job, decided: a pure reducer from events to actions.
//
//   phase      what it is                              leaves when
//   preparing  servers run, trainers wait              every server listens (or has ended well), or ready_timeout passes
//   running    all run                                 the trainers have ended well, or the first process fails
//   stopping   all were asked to stop (SIGTERM)        all have ended, or the grace passes
//   killing    all were made to stop (SIGKILL)         all have ended
//   done       nothing runs                            -
//
// A collective job begins in `running`. The first failure decides the outcome, and the ones after it are
// consequences. A server that ends well while trainers run is no failure; one that does not is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/plan.h"
#include "runtime/base/exit_reason.h"

namespace fleetrun::launcher {

struct Started {
  std::size_t index = 0;
};
struct Exited {
  std::size_t index = 0;
  ExitReason reason;
};
struct NotStarted {
  std::size_t index = 0;
  std::string stage;
  int error = 0;
};
struct ServersReady {};
struct ReadyTimeout {};
struct GraceElapsed {};
struct StopAsked {
  int signal = 0;  // that fleetrun got
};
struct PodLost {};  // fleetrun-init is gone

using Event =
    std::variant<Started, Exited, NotStarted, ServersReady, ReadyTimeout, GraceElapsed, StopAsked, PodLost>;

struct StartProcess {
  std::size_t index = 0;
  bool operator==(const StartProcess&) const = default;
};
struct AskToStop {
  std::size_t index = 0;
  bool operator==(const AskToStop&) const = default;
};
struct AwaitServers {
  bool operator==(const AwaitServers&) const = default;
};
struct ArmGrace {
  bool operator==(const ArmGrace&) const = default;
};
struct KillPod {
  bool operator==(const KillPod&) const = default;
};
/// Everything has ended: what is left below init is killed, and the job is over.
struct EndJob {
  bool operator==(const EndJob&) const = default;
};
struct WarnNotReady {
  bool operator==(const WarnNotReady&) const = default;
};

using Action = std::variant<StartProcess, AskToStop, AwaitServers, ArmGrace, KillPod, EndJob, WarnNotReady>;

/// The failure that decided the outcome.
struct Failure {
  std::size_t index = 0;
  std::variant<ExitReason, NotStarted> cause;
};

enum class Phase { preparing, running, stopping, killing, done };

class JobState {
 public:
  /// One role per process of the plan, in its order.
  explicit JobState(std::vector<Role> roles);

  /// What to do first.
  std::vector<Action> begin();

  /// What to do about `event`. Events after `done` change nothing.
  std::vector<Action> on(const Event& event);

  Phase phase() const noexcept { return phase_; }
  const std::optional<Failure>& failure() const noexcept { return failure_; }
  std::optional<int> stop_signal() const noexcept { return stop_signal_; }
  bool pod_lost() const noexcept { return pod_lost_; }

 private:
  enum class Life { waiting, alive, ended };

  void on_event(const Started& event, std::vector<Action>& actions);
  void on_event(const Exited& event, std::vector<Action>& actions);
  void on_event(const NotStarted& event, std::vector<Action>& actions);
  void on_event(const ServersReady& event, std::vector<Action>& actions);
  void on_event(const ReadyTimeout& event, std::vector<Action>& actions);
  void on_event(const GraceElapsed& event, std::vector<Action>& actions);
  void on_event(const StopAsked& event, std::vector<Action>& actions);
  void on_event(const PodLost& event, std::vector<Action>& actions);

  void start_role(Role role, std::vector<Action>& actions);
  void fail(Failure failure, std::vector<Action>& actions);
  void stop(std::vector<Action>& actions);
  void finish_if_ended(std::vector<Action>& actions);
  bool all(Role role, Life life) const;

  std::vector<Role> roles_;
  std::vector<Life> lives_;
  Phase phase_ = Phase::running;
  std::optional<Failure> failure_;
  std::optional<int> stop_signal_;
  bool pod_lost_ = false;
};

}  // namespace fleetrun::launcher
