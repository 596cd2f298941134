// Tells the user about the milestones of a job, in LAUNCH lines.
#pragma once

#include <map>
#include <string>

#include "cli/launch_log.h"
#include "launcher/job_event.h"
#include "launcher/plan.h"

namespace fleetrun::cli {

class Narrator final : public launcher::JobObserver {
 public:
  /// Both are borrowed.
  /// `containment` is the level that was wished, or "auto".
  Narrator(LaunchLog& log, const launcher::Plan& plan, std::string_view containment)
      : log_(log), plan_(plan), containment_(containment) {}

  void on_event(const launcher::JobEvent& event) override;

 private:
  template <class Other>
  void on(const Other&) {}
  void on(const launcher::event::Contained& event);
  void on(const launcher::event::AllRunning& event);
  void on(const launcher::event::ProcessStarted& event);
  void on(const launcher::event::ProcessExited& event);
  void on(const launcher::event::StopBegan& event);
  void on(const launcher::event::GraceElapsed& event);
  void on(const launcher::event::FailureExplained& event);
  void on(const launcher::event::RestartDecided& event);
  void on(const launcher::event::GaveUp& event);
  void on(const launcher::event::SignalReceived& event);
  void on(const launcher::event::SignalForwarded& event);
  void on(const launcher::event::HangFound& event);
  void on(const launcher::event::Injected& event);
  void on(const launcher::event::Unkillable& event);
  void on(const launcher::event::Warning& event);
  void on(const launcher::event::WorldBegan& event);
  void on(const launcher::event::WorldEnded& event);
  void on(const launcher::event::News& event);

  /// "trainer 0 (pid 4711), server 1 (pid 4712)"
  std::string names(const std::vector<std::size_t>& indices) const;

  LaunchLog& log_;
  const launcher::Plan& plan_;
  std::string containment_;  // asked for
  std::string reached_;      // containment, in fact
  std::map<std::size_t, pid_t> pids_;
  bool signal_received_ = false;
};

}  // namespace fleetrun::cli
