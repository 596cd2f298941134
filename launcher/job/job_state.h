// What happens in a job, decided: a pure reducer from events to actions.
//
//   phase       what it is                                   leaves when
//   starting    roles whose `after` is not ready wait        every role was started
//   running     all run                                      those that are waited for have ended well, or
//                                                            one fails
//   stopping    all were asked to stop                       all have ended
//   killing     all that were left were killed               all have ended
//   explaining  all have ended because of a failure          its cause is known (Explained)
//   sweeping    there will be another attempt, and what      nothing is left below init (Swept)
//               the last one left behind is killed
//   resting     the backoff                                  it is over: starting
//   rendezvous  nothing runs, and the other hosts decide     a world begins (WorldBegins), or the job is over
//   done        nothing runs                                 -
//
// In a job of several hosts (`in_world`) nobody decides alone. A failure of the group is reported twice, when
// it is seen and when it is explained, and then the pod waits in `rendezvous`. WorldEnds stops what runs;
// once everything is swept that is reported too, and the pod waits for the next world. Work that is done is
// reported, and its servers go on until JobDecided.
//
//   life of a process: waiting → alive → ended, and for one that is restarted alone
//                      alive → explaining → sweeping → resting → alive
//
// The first failure of an attempt stops all others (of a role that is restarted alone: none). What those
// others then end with is a consequence. Which failure was the root is said by Explained, which comes once
// all have ended. A role that `serves` is not waited for; when such a process ends well, it has not failed.
// A role may have more processes than are wanted (CountWanted): those have not been started, or end well.
// Where processes stand by (--on_failure=replace), a trainer that fails stops nobody while somebody can take
// its place (launcher/job/replacements.h): it is started again like one that is restarted alone, to stand by.
// A process is of the role whose work it does: it changes with its place.
// One that was restarted alone and says that it cannot go on so has everything started again, at once; that
// is still the restart that was counted for it.
// Each process has the grace of its role between being asked to stop and being killed.
// A second request to stop kills at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/job/replacements.h"
#include "launcher/model/job_action.h"
#include "launcher/model/plan.h"
#include "launcher/model/restart_policy.h"
#include "runtime/base/exit_reason.h"

namespace fleetrun::launcher {

/// The failure that decided the outcome.
struct Failure {
  std::size_t index = 0;
  int attempt = 0;
  std::variant<ExitReason, NotStarted> cause;
  bool hung = false;
};

enum class Phase { starting, running, stopping, killing, explaining, sweeping, resting, rendezvous, done };

/// The part of a pod in a job of several hosts.
struct InWorld {
  int attempt = 0;  // of the first world that it sees
};

class JobState {
 public:
  /// `role_of`: for each process of the plan, in its order, its role's index.
  /// `world`: the job is on several hosts.
  JobState(std::vector<RolePlan> roles, const std::vector<std::size_t>& role_of, RestartPolicy policy,
           std::optional<InWorld> world = std::nullopt);

  /// What to do first.
  std::vector<Action> begin();

  /// What to do about `event`. Events after `done` change nothing.
  std::vector<Action> on(const Event& event);

  Phase phase() const noexcept { return phase_; }
  bool stopping() const noexcept { return phase_ == Phase::stopping || phase_ == Phase::killing; }
  int attempt() const noexcept { return attempt_; }
  /// The attempt in which all processes were started together; those that were restarted alone belong to it.
  int group_attempt() const noexcept { return group_attempt_; }
  /// True once this process was asked to stop or killed by us, in its current attempt.
  bool asked(std::size_t index) const noexcept { return processes_[index].asked; }
  bool alive(std::size_t index) const noexcept { return processes_[index].life == Life::alive; }
  bool hung(std::size_t index) const noexcept { return processes_[index].hung; }
  std::size_t role_of(std::size_t index) const noexcept { return processes_[index].role; }
  /// Whether the process is to run: of a role that has more than are wanted, the first ones are.
  bool wanted(std::size_t index) const noexcept;
  std::size_t count_wanted() const noexcept;
  /// The last group attempt in which the role was ready.
  const std::optional<int>& ready_in(std::size_t role) const noexcept { return ready_in_[role]; }
  /// The process is one of those that take each other's places, or (stands_by) waits for that.
  bool is_replaceable(std::size_t index) const noexcept;
  bool stands_by(std::size_t index) const noexcept {
    return is_replaceable(index) && replacements_->stands_by(index);
  }

  // The outcome, valid when done.
  const std::optional<Failure>& failure() const noexcept { return failure_; }
  std::optional<int> stop_signal() const noexcept { return stop_signal_; }
  /// The signal that stopped the job means that it is to be started again later.
  bool drained() const noexcept { return drained_; }
  bool timed_out() const noexcept { return timed_out_; }
  bool pod_lost() const noexcept { return pod_lost_; }

 private:
  enum class Life { waiting, alive, explaining, sweeping, resting, ended };

  struct Process {
    std::size_t role = 0;
    Life life = Life::waiting;
    int attempt = 0;
    bool asked = false, killed = false, hung = false;
    bool well = false;  // ended with 0
    std::variant<ExitReason, NotStarted> end;
  };
  struct RoleState {
    bool started = false, ready = false;
  };

  using Actions = std::vector<Action>;

  void on_event(const Started& event, Actions& actions);
  void on_event(const Exited& event, Actions& actions);
  void on_event(const NotStarted& event, Actions& actions);
  void on_event(const RoleReady& event, Actions& actions);
  void on_event(const ReadyTimeout& event, Actions& actions);
  void on_event(const GraceElapsed& event, Actions& actions);
  void on_event(const Explained& event, Actions& actions);
  void on_event(const Swept& event, Actions& actions);
  void on_event(const BackoffElapsed& event, Actions& actions);
  void on_event(const Hung& event, Actions& actions);
  void on_event(const MemberSaid& event, Actions& actions);
  void on_event(const CountWanted& event, Actions& actions);
  void on_event(const StopAsked& event, Actions& actions);
  void note_signal(const StopAsked& event);
  void on_event(const TimedOut& event, Actions& actions);
  void on_event(const PodLost& event, Actions& actions);
  void on_event(const WorldEnds& event, Actions& actions);
  void on_event(const WorldBegins& event, Actions& actions);
  void on_event(const JobDecided& event, Actions& actions);

  void note_ready(std::size_t role);
  bool undisturbed() const noexcept { return phase_ == Phase::starting || phase_ == Phase::running; }
  void begin_attempt(Actions& actions);
  void start_what_can_be(Actions& actions);
  void start(std::size_t index, Actions& actions);
  void fail(std::size_t index, Actions& actions);
  bool replace(std::size_t index, Actions& actions);
  void begin_generation(Actions& actions);
  void restart_alone(std::size_t index, std::chrono::milliseconds backoff, std::string why, Actions& actions);
  void decide_alone(const Explained& event, Actions& actions);
  void end_attempt(const Explained& event, Actions& actions);
  void decide_group(const Explained& event, Actions& actions);
  void after_end(Actions& actions);
  void stop(const std::string& why, Actions& actions);
  void kill_everything(Actions& actions);
  void finish_if_ended(Actions& actions);
  void meet(Actions& actions);
  void report_done(Actions& actions);
  void end_job(Actions& actions);
  bool role_ended(std::size_t role) const;
  bool none_alive() const;
  bool work_is_done() const;

  std::vector<RolePlan> roles_;
  const std::vector<std::size_t> role_of_;  // at the start of an attempt
  std::optional<Replacements> replacements_;
  std::vector<RoleState> role_states_;
  std::vector<std::optional<int>> ready_in_;
  std::vector<Process> processes_;
  RestartPolicy policy_;
  Phase phase_ = Phase::starting;
  int attempt_ = 0;  // the newest that was started, of the job
  int group_attempt_ = 0;
  bool begun_ = false;  // the first attempt, which is prepared by the caller
  std::optional<std::size_t> first_failed_;
  bool port_retry_used_ = false;
  bool all_start_again_ = false;   // one that was restarted alone could not go on so
  bool no_more_attempts_ = false;  // somebody wanted the stop that follows a failure to be quick
  std::optional<std::chrono::milliseconds> pending_backoff_;  // of the next attempt
  std::vector<std::chrono::milliseconds> backoffs_;           // of processes that are restarted alone

  std::optional<Failure> failure_;
  std::optional<int> stop_signal_;
  bool drained_ = false;
  bool timed_out_ = false;
  bool pod_lost_ = false;

  // Of a job of several hosts.
  const bool in_world_;
  bool world_ended_ = false;    // WorldEnds has come, and ReportDrained is owed
  bool done_reported_ = false;  // in this attempt
  bool job_decided_ = false;
};

}  // namespace fleetrun::launcher
