// What happened in a job, gathered from its events for those who explain its end: which processes ended,
// when, how and of whose will, and what became of each attempt. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "launcher/model/job_event.h"
#include "launcher/model/job_record.h"

namespace fleetrun::launcher {

/// A start that failed at `stage`, with errno.
struct StartFailure {
  std::string stage;
  int error = 0;
  bool operator==(const StartFailure&) const = default;
};

/// The end of one process in its last attempt.
struct Ending {
  std::size_t index = 0;
  int attempt = 0;
  pid_t pid = -1;
  std::int64_t started_at = 0, at = 0;  // CLOCK_MONOTONIC, nanoseconds
  bool asked = false;                   // fleetrun had told it to stop
  bool hung = false;                    // fleetrun ended it because it hung
  std::string hang_why = {};            // what was seen of that
  std::uint64_t sent = 0;               // the signals that fleetrun sent to it: bit N for number N
  std::int64_t max_rss_kib = 0;
  std::variant<ExitReason, StartFailure> how;

  bool ok() const noexcept;
  /// Did it die of a signal that fleetrun sent?
  bool by_our_signal() const noexcept;
  /// Did it end as fleetrun told it to?
  bool as_told() const noexcept { return asked && !hung && by_our_signal(); }
  /// "exited with 3", "was killed by SIGPIPE", "could not be started".
  std::string said() const;
};

/// A failure that was explained, and what was decided about it.
struct AttemptHistory {
  int attempt = 0;
  std::size_t index = 0;  // the process that failed first
  Cause cause;
  std::string decision;  // "crash, restart 1 of 3"; empty: nothing more was tried
  bool restarted = false;
};

class JobHistory final : public JobObserver {
 public:
  struct Start {
    pid_t pid = -1;
    std::int64_t at = 0;
    std::uint64_t sent = 0;
  };

  void on_event(const JobEvent& event) override;

  /// Signals that were sent, and processes that are left alive.
  void on_record(const JobRecord& record);

  const std::vector<pid_t>& left_alive() const noexcept { return left_alive_; }

  /// The ends of the current attempt's processes, in the order in which they came.
  const std::vector<Ending>& endings() const noexcept { return endings_; }
  const Ending* ending_of(std::size_t index) const;
  const std::vector<AttemptHistory>& attempts() const noexcept { return attempts_; }
  const std::string& containment() const noexcept { return containment_; }
  /// When the first process started; 0 before that.
  std::int64_t began_at() const noexcept { return began_at_; }
  const std::vector<std::string>& injected() const noexcept { return injected_; }
  int restarts() const noexcept { return restarts_; }
  /// The processes that live, by index.
  const std::map<std::size_t, Start>& alive() const noexcept { return starts_; }

 private:
  void on(const event::Contained& event);
  void on(const event::ProcessStarted& event);
  void on(const event::ProcessExited& event);
  void on(const event::ProcessNotStarted& event);
  void on(const event::HangFound& event);
  void on(const event::Injected& event);
  void on(const event::FailureExplained& event);
  void on(const event::RestartDecided& event);
  void on(const event::GaveUp& event);
  void on(const SignalSent& sent);
  void on(const LeftAlive& left) { left_alive_.push_back(left.pid); }
  template <class Other>
  void on(const Other&) {}

  void add(Ending ending);

  std::vector<Ending> endings_;
  std::vector<AttemptHistory> attempts_;
  std::map<std::size_t, Start> starts_;      // of the processes that live
  std::map<std::size_t, std::string> hung_;  // and why
  std::vector<std::string> injected_;
  std::string containment_;
  std::int64_t began_at_ = 0, last_at_ = 0;
  int restarts_ = 0;
  std::vector<pid_t> left_alive_;
};

}  // namespace fleetrun::launcher
