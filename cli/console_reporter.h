// Tells the user about the milestones of a job, in LAUNCH lines.
//
// The sentences are those of launcher/job/event_text; here is what is Paddle's own line, what only this
// terminal wants to know, and what cli/launch_log says in another place.
#pragma once

#include <string>

#include "cli/launch_log.h"
#include "launcher/job/event_text.h"
#include "launcher/model/job_event.h"
#include "launcher/model/plan.h"

namespace fleetrun::cli {

class ConsoleReporter final : public launcher::JobObserver {
 public:
  /// Both are borrowed.
  /// `containment` is the level that was asked for, or "auto".
  ConsoleReporter(LaunchLog& log, const launcher::Plan& plan, std::string_view containment)
      : log_(log), plan_(plan), text_(plan), containment_(containment) {}

  void on_event(const launcher::JobEvent& event) override;

 private:
  template <class Other>
  void say(const Other&, const launcher::Sentence& sentence) {
    if (!sentence.text.empty()) log_.write(sentence.level, sentence.text);
  }
  void say(const launcher::event::Contained& event, const launcher::Sentence&);
  void say(const launcher::event::AllRunning& event, const launcher::Sentence&);
  void say(const launcher::event::SignalReceived& event, const launcher::Sentence&);
  void say(const launcher::event::StopBegan& event, const launcher::Sentence&);
  // The end of a job has lines of its own (LaunchLog::show_end).
  void say(const launcher::event::ProcessNotStarted&, const launcher::Sentence&) {}
  void say(const launcher::event::JobEnded&, const launcher::Sentence&) {}
  void say(const launcher::event::ProcessExited&, const launcher::Sentence& sentence) {
    log_.debug(sentence.text);
  }
  void say(const launcher::event::FailureExplained&, const launcher::Sentence& sentence) {
    log_.debug(sentence.text);
  }

  LaunchLog& log_;
  const launcher::Plan& plan_;
  launcher::EventText text_;
  std::string containment_;  // asked for
  std::string reached_;      // containment, in fact
  bool signal_received_ = false;
};

}  // namespace fleetrun::cli
