#include "launcher/job/event_text.h"

#include <algorithm>
#include <cstdio>
#include <system_error>

#include "runtime/base/exit_reason.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kMaxNames = 8;  // then they are counted

/// "30 s", "0.5 s"
std::string seconds(std::chrono::milliseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", std::chrono::duration<double>(time).count());
  return text;
}

}  // namespace

std::string to_string(const event::WorldBegan& began) {
  constexpr std::size_t kMaxHosts = 8;
  std::string text = "epoch " + std::to_string(began.generation) + ": " + std::to_string(began.hosts.size()) +
                     (began.hosts.size() == 1 ? " host (" : " hosts (");
  for (std::size_t i = 0; i < began.hosts.size() && i < kMaxHosts; ++i)
    text += (i > 0 ? ", " : "") + began.hosts[i];
  if (began.hosts.size() > kMaxHosts)
    text += " and " + std::to_string(began.hosts.size() - kMaxHosts) + " others";
  text += "), ";
  if (began.servers > 0)
    text += std::to_string(began.servers) + (began.servers == 1 ? " server, " : " servers, ");
  text += std::to_string(began.trainers) + (began.trainers == 1 ? " trainer" : " trainers");
  return text + ", attempt " + std::to_string(began.attempt);
}

Sentence EventText::on(const JobEvent& event) {
  return std::visit([this](const auto& happened) { return say(happened); }, event);
}

std::string EventText::names(const std::vector<std::size_t>& processes) const {
  std::string text;
  const std::size_t shown = processes.size() > kMaxNames + 1 ? kMaxNames : processes.size();
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == processes.size() ? " and " : ", ";
    text += plan_.processes.at(processes[i]).name;
    if (pids_[processes[i]] > 0) text += " (pid " + std::to_string(pids_[processes[i]]) + ")";
  }
  if (shown < processes.size()) text += " and " + std::to_string(processes.size() - shown) + " others";
  return text;
}

Sentence EventText::say(const event::Contained& contained) {
  return {LogLevel::debug, "containment " + contained.level +
                               (contained.why_not_more.empty() ? "" : " (" + contained.why_not_more + ")")};
}

Sentence EventText::say(const event::ProcessStarted& started) {
  pids_.at(started.index) = started.pid;
  return {LogLevel::debug,
          plan_.processes[started.index].name + " started, pid " + std::to_string(started.pid)};
}

Sentence EventText::say(const event::ProcessExited& exited) {
  const bool expected = exited.asked || exited.reason.ok();
  return {expected ? LogLevel::debug : LogLevel::info, plan_.processes.at(exited.index).name + " (pid " +
                                                           std::to_string(exited.pid) + ") " +
                                                           to_string(exited.reason)};
}

Sentence EventText::say(const event::ProcessNotStarted& failed) {
  return {LogLevel::error, plan_.processes.at(failed.index).name + " could not be started: " +
                               std::generic_category().message(failed.error) + " (" + failed.stage + ")"};
}

Sentence EventText::say(const event::AllRunning&) {
  return {LogLevel::info, "all " + std::to_string(plan_.processes.size()) + " processes run"};
}

Sentence EventText::say(const event::GenerationBegan& began) {
  std::string text;
  for (const auto& replaced : began.replaced)
    text += (text.empty() ? "" : ", ") + plan_.processes.at(replaced.by).name + " takes the place of " +
            plan_.processes.at(replaced.lost).name + " as rank " + std::to_string(replaced.rank);
  if (text.empty()) text = "the trainers meet again";
  if (began.step >= 0) text += "; step " + std::to_string(began.step) + " is next";
  return {LogLevel::warning, text + " (generation " + std::to_string(began.generation) + ")"};
}

Sentence EventText::say(const event::RoleReady& ready) {
  return {LogLevel::debug, plan_.roles.at(ready.role).name + " is ready"};
}

Sentence EventText::say(const event::StopBegan& stop) {
  if (stop.waiting_for.empty()) return {};
  std::chrono::milliseconds grace{};
  for (const std::size_t index : stop.waiting_for)
    grace = std::max(grace, plan_.roles.at(plan_.processes.at(index).role).grace);
  return {LogLevel::info, stop.why + (stop.why.empty() ? "" : ": ") + "waiting up to " + seconds(grace) +
                              " for " + names(stop.waiting_for) + "; a second signal kills at once"};
}

Sentence EventText::say(const event::GraceElapsed& elapsed) {
  return {LogLevel::warning, names(elapsed.still_alive) + " did not end within the grace (--grace) and " +
                                 (elapsed.still_alive.size() == 1 ? "is" : "are") + " killed"};
}

Sentence EventText::say(const event::FailureExplained& explained) {
  return {LogLevel::error, plan_.processes.at(explained.index).name + " " + explained.cause.text +
                               (explained.cause.hint.empty() ? "" : "\n  hint: " + explained.cause.hint)};
}

Sentence EventText::say(const event::RestartDecided& decided) {
  const std::string& who = plan_.processes.at(decided.index).name;
  const std::string what = decided.scope == RestartScope::process
                               ? who + " is started again"
                               : "all processes are started again, because " + who + " failed";
  return {LogLevel::warning, what + ": attempt " + std::to_string(decided.next_attempt) +
                                 (decided.backoff.count() > 0 ? " in " + seconds(decided.backoff) : "") +
                                 " (" + decided.why + ")"};
}

Sentence EventText::say(const event::GaveUp& gave_up) {
  return {LogLevel::warning, "no restart: " + gave_up.why};
}

Sentence EventText::say(const event::SignalReceived& received) {
  return {LogLevel::info, received.again ? "got " + signal_name(received.number) + " again: killing all now"
                                         : "got " + signal_name(received.number)};
}

Sentence EventText::say(const event::SignalForwarded& forwarded) {
  return {LogLevel::info, signal_name(forwarded.number) + " is passed on to all processes"};
}

Sentence EventText::say(const event::HangFound& hang) {
  return {LogLevel::error,
          "the job hangs: " + names(hang.culprits) + (hang.report.empty() ? "" : "\n" + hang.report)};
}

Sentence EventText::say(const event::Injected& injected) {
  return {LogLevel::warning, "injected: " + injected.what};
}

Sentence EventText::say(const event::Unkillable& unkillable) {
  return {LogLevel::error,
          "process " + std::to_string(unkillable.pid) + " was killed and does not end: " + unkillable.why};
}

Sentence EventText::say(const event::Warning& warning) {
  return {LogLevel::warning, warning.text};
}

Sentence EventText::say(const event::WorldBegan& began) {
  return {LogLevel::info, to_string(began)};
}

Sentence EventText::say(const event::WorldEnded& ended) {
  return {LogLevel::warning,
          (ended.at_once ? "everything here is killed: " : "everything here stops: ") + ended.why};
}

Sentence EventText::say(const event::ServersMove& move) {
  const std::string moved =
      std::to_string(move.moved) + " of " + std::to_string(move.of) + " servers have moved";
  const std::string processes =
      "server processes: " + std::to_string(move.from) + " to " + std::to_string(move.to);
  if (!move.done) return {LogLevel::info, processes + ", " + moved};
  const std::string took =
      std::to_string(move.took_ms / 1000) + "." + std::to_string(move.took_ms % 1000 / 100);
  return {LogLevel::info, processes + ", done in " + took + " s: " + moved};
}

Sentence EventText::say(const event::PodStands& stands) {
  if (!stands.still) return {LogLevel::warning, "the processes here go on"};
  return {LogLevel::warning, "the processes here stand still until the other hosts are heard again"};
}

Sentence EventText::say(const event::News& news) {
  return {news.detail ? LogLevel::debug : LogLevel::info, news.text};
}

Sentence EventText::say(const event::JobEnded& ended) {
  return {LogLevel::info, "the job has ended with exit status " + std::to_string(ended.exit_status)};
}

}  // namespace fleetrun::launcher
