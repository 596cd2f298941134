#include "cli/narrator.h"

#include <algorithm>
#include <cstdio>

#include "launcher/event_text.h"
#include "runtime/base/exit_reason.h"
#include "runtime/base/text.h"

namespace fleetrun::cli {
namespace {

constexpr std::size_t kMostNames = 8;  // in one line

/// "1.5 s"
std::string seconds(std::chrono::milliseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", std::chrono::duration<double>(time).count());
  return text;
}

}  // namespace

void Narrator::on_event(const launcher::JobEvent& event) {
  std::visit([this](const auto& e) { on(e); }, event);
}

void Narrator::on(const launcher::event::Contained& event) {
  reached_ = event.level;
  const std::string reason = event.why_not_more.empty() ? "" : " (not more: " + event.why_not_more + ")";
  if (containment_ != "auto" && containment_ != event.level)
    log_.warning("containment " + event.level + reason + ", not " + containment_ + " as asked for");
  else if (!reason.empty())
    log_.debug("containment " + event.level + reason);
}

void Narrator::on(const launcher::event::AllRunning&) {
  log_.info("Watching Pod: " + plan_.pod_name + ", replicas " + std::to_string(plan_.processes.size()) +
            ", status running");
  log_.info("Containment: " + reached_);
}

void Narrator::on(const launcher::event::ProcessStarted& event) {
  pids_[event.index] = event.pid;
}

void Narrator::on(const launcher::event::ProcessExited& event) {
  log_.debug(plan_.processes[event.index].name + " (pid " + std::to_string(event.pid) + ") " +
             to_string(event.reason));
}

/// Only who waits at a terminal wants to know whom fleetrun waits for.
void Narrator::on(const launcher::event::StopBegan& event) {
  if (!signal_received_) return;
  std::chrono::milliseconds grace{};
  for (const std::size_t index : event.waiting_for)
    grace = std::max(grace, plan_.roles[plan_.processes[index].role].grace);
  log_.info("waiting up to " + seconds(grace) + " for " + names(event.waiting_for) +
            "; a second signal kills at once");
}

void Narrator::on(const launcher::event::GraceElapsed& event) {
  log_.warning(names(event.still_alive) + " did not end within the grace (--grace) and " +
               (event.still_alive.size() == 1 ? "is" : "are") + " killed");
}

void Narrator::on(const launcher::event::FailureExplained& event) {
  log_.debug(plan_.processes[event.index].name + " " + event.cause.text);
}

void Narrator::on(const launcher::event::RestartDecided& event) {
  const std::string who = plan_.processes[event.index].name;
  const std::string what = event.scope == launcher::RestartScope::process
                               ? who + " is started again"
                               : "all processes are started again, because " + who + " failed";
  log_.warning(what + ": attempt " + std::to_string(event.next_attempt) +
               (event.backoff.count() == 0 ? "" : " in " + seconds(event.backoff)) + " (" + event.why + ")");
}

void Narrator::on(const launcher::event::GaveUp& event) {
  log_.warning("no restart: " + event.why);
}

void Narrator::on(const launcher::event::SignalReceived& event) {
  signal_received_ = true;
  log_.info(event.again ? "Force quit" : "Terminating with signal " + std::to_string(event.number));
}

void Narrator::on(const launcher::event::SignalForwarded& event) {
  log_.info(signal_name(event.number) + " is passed on to all processes");
}

void Narrator::on(const launcher::event::HangFound& event) {
  log_.error("the job hangs: " + names(event.culprits) + "\n" + event.report);
}

void Narrator::on(const launcher::event::Injected& event) {
  log_.warning("injected: " + event.what);
}

void Narrator::on(const launcher::event::Unkillable& event) {
  log_.error("process " + std::to_string(event.pid) + " was killed and does not end: " + event.why);
}

void Narrator::on(const launcher::event::Warning& event) {
  log_.warning(event.text);
}

void Narrator::on(const launcher::event::WorldBegan& event) {
  log_.info(launcher::to_string(event));
}

void Narrator::on(const launcher::event::WorldEnded& event) {
  log_.warning((event.at_once ? "everything here is killed: " : "everything here stops: ") + event.why);
}

void Narrator::on(const launcher::event::News& event) {
  if (event.detail)
    log_.debug(event.text);
  else
    log_.info(event.text);
}

std::string Narrator::names(const std::vector<std::size_t>& indices) const {
  std::vector<std::string> shown;
  for (const std::size_t index : indices) {
    if (shown.size() == kMostNames) {
      shown.push_back(std::to_string(indices.size() - kMostNames) + " others");
      break;
    }
    const auto pid = pids_.find(index);
    shown.push_back(plan_.processes[index].name +
                    (pid == pids_.end() ? "" : " (pid " + std::to_string(pid->second) + ")"));
  }
  return join(shown, ", ");
}

}  // namespace fleetrun::cli
