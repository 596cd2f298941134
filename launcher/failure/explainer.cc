#include "launcher/failure/explainer.h"

#include <csignal>

#include "launcher/failure/failure_text.h"
#include "launcher/failure/root_cause.h"
#include "launcher/logs/log_tail.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kQuickBytes = 8 * 1024;

std::optional<FailureText> text_of(const LogFile& log, std::size_t max_bytes = kFailureTextBytes) {
  return find_failure(log_tail(log.path, log.start, max_bytes));
}

Death death_of(const Ending& ending, const Plan& plan, const LogFile& log) {
  const ProcessSpec& process = plan.processes[ending.index];
  Death death;
  death.index = ending.index;
  death.pid = ending.pid;
  if (const auto* reason = std::get_if<ExitReason>(&ending.how)) death.reason = *reason;
  death.at = ending.at;
  if (ending.by_our_signal()) death.sent_signal = death.reason.code;
  death.hung = ending.hung;
  death.hang_why = ending.hang_why;
  if (ending.max_rss_kib > 0) death.peak_rss = static_cast<std::uint64_t>(ending.max_rss_kib) * 1024;
  death.cwd = process.cwd;
  death.log_path = log.path;
  death.log_shown = log.shown;
  death.log_start = log.start;
  death.log_lost = log.lost;
  return death;
}

}  // namespace

void Explainer::on_event(const JobEvent& event) {
  history_.on_event(event);
  if (const auto* exited = std::get_if<event::ProcessExited>(&event)) note(*exited);
}

void Explainer::note(const event::ProcessExited& event) {
  const Ending* ending = history_.ending_of(event.index);
  Death death;
  death.index = event.index;
  death.reason = event.reason;
  death.at = event.at;
  if (ending && ending->by_our_signal()) death.sent_signal = event.reason.code;
  collector_.note(death);
}

void Explainer::look() {
  for (const auto& [index, start] : history_.alive()) collector_.look(index, start.pid);
}

bool Explainer::only_follows(const LogFile& log) {
  const auto text = text_of(log, kQuickBytes);
  return text && text->consequence;
}

Cause Explainer::cause_of(const Ending& ending, const Plan& plan, const LogFile& log) {
  if (const auto* start = std::get_if<StartFailure>(&ending.how))
    return explain_start(plan.processes[ending.index].program, start->stage, start->error);
  const Death death = death_of(ending, plan, log);
  Cause cause = launcher::explain(collector_.collect(death), death.reason);
  if (!history_.injected().empty()) cause.detail += "injected before: " + history_.injected().back() + "\n";
  return cause;
}

Explanation Explainer::explain(std::size_t index, bool alone, const Plan& plan,
                               const std::vector<LogFile>& logs) {
  if (!alone) {
    const auto root = root_cause(history_.endings(), [&](std::size_t i) { return text_of(logs[i]); });
    index = root.value_or(index);
  }
  Explanation explanation;
  explanation.index = index;
  const Ending* ending = history_.ending_of(index);
  if (!ending) return explanation;
  explanation.cause = cause_of(*ending, plan, logs[index]);
  explanation.port_clash =
      explanation.cause.kind == FailureKind::crash && is_port_clash(explanation.cause.text);
  return explanation;
}

}  // namespace fleetrun::launcher
