#include "cli/console_reporter.h"

#include <variant>

namespace fleetrun::cli {

void ConsoleReporter::on_event(const launcher::JobEvent& event) {
  const launcher::Sentence sentence = text_.on(event);
  std::visit([&](const auto& happened) { say(happened, sentence); }, event);
}

void ConsoleReporter::say(const launcher::event::Contained& event, const launcher::Sentence&) {
  reached_ = event.level;
  const std::string reason = event.why_not_more.empty() ? "" : " (not more: " + event.why_not_more + ")";
  if (containment_ != "auto" && containment_ != event.level)
    log_.warning("containment " + event.level + reason + ", not " + containment_ + " as asked for");
  else if (!reason.empty())
    log_.debug("containment " + event.level + reason);
}

void ConsoleReporter::say(const launcher::event::AllRunning&, const launcher::Sentence&) {
  log_.info("Watching Pod: " + plan_.pod_name + ", replicas " + std::to_string(plan_.processes.size()) +
            ", status running");
  log_.info("Containment: " + reached_);
}

/// Only who waits at a terminal wants to know whom fleetrun waits for, and knows why.
void ConsoleReporter::say(const launcher::event::StopBegan& event, const launcher::Sentence&) {
  if (!signal_received_) return;
  const launcher::Sentence sentence = text_.on(launcher::event::StopBegan{"", event.waiting_for});
  if (!sentence.text.empty()) log_.write(sentence.level, sentence.text);
}

void ConsoleReporter::say(const launcher::event::SignalReceived& event, const launcher::Sentence&) {
  signal_received_ = true;
  log_.tell(event.again ? "Force quit" : "Terminating with signal " + std::to_string(event.number));
}

}  // namespace fleetrun::cli
