// Exit status: 0, the first failing process's own code, 128 + its signal, 128 + the signal that fleetrun got,
// 124 when the time was up, 127 or 126 for a program that did not start, 125 when fleetrun-init was lost.
//
// When the process that failed first was slow to die, so that fleetrun stopped it, the status is that of the
// first one that died of itself: 143 would be fleetrun's doing.
#include "launcher/failure/report.h"

#include <algorithm>
#include <cerrno>
#include <map>

#include "launcher/failure/cause.h"
#include "launcher/model/program.h"
#include "launcher/model/signal_map.h"

namespace fleetrun::launcher {
namespace {

constexpr int kTimedOut = 124;
constexpr int kRefused = 125;

/// The death whose status is the job's.
const Ending* deciding(const Ending* root, const JobHistory& history) {
  if (!root || !root->as_told()) return root;
  const Ending* first = nullptr;
  for (const Ending& ending : history.endings()) {
    if (ending.ok() || ending.asked) continue;
    if (!first || ending.at < first->at) first = &ending;
  }
  return first ? first : root;
}

void take_status(const ExitReason& reason, Report& report) {
  report.exit_status = exit_status(reason);
  report.shown_code = reason.kind == ExitReason::Kind::signaled ? -reason.code : reason.code;
}

void take_start(const std::string& stage, int error, Report& report) {
  report.exit_status = report.shown_code = stage == "exec" && error == ENOENT ? kNotFound : kNotStartable;
  report.own_status = true;
}

/// What was explained about `index`; what the state alone says where nothing was.
Cause cause_of(const Failure& failure, const Plan& plan, const JobHistory& history) {
  if (!history.attempts().empty() && history.attempts().back().index == failure.index)
    return history.attempts().back().cause;
  if (const auto* start = std::get_if<NotStarted>(&failure.cause))
    return explain_start(plan.processes[failure.index].program, start->stage, start->error);
  Cause cause;
  cause.text = to_string(std::get<ExitReason>(failure.cause));
  return cause;
}

std::vector<Followers> followers_of(const Ending& root, const Plan& plan, const JobHistory& history) {
  std::map<std::pair<bool, std::string>, Followers> alike;
  std::vector<Ending> endings = history.endings();
  std::sort(endings.begin(), endings.end(),
            [](const Ending& a, const Ending& b) { return a.index < b.index; });
  for (const Ending& ending : endings) {
    if (ending.index == root.index || ending.ok()) continue;
    const auto* reason = std::get_if<ExitReason>(&ending.how);
    const std::string said =
        ending.as_told() && reason ? "ended with " + std::to_string(exit_status(*reason)) : ending.said();
    const std::int64_t delay = ending.at - root.at;
    const auto [found, added] = alike.try_emplace({ending.asked, said});
    Followers& group = found->second;
    if (added) group = {said, ending.asked, {}, delay, delay};
    group.names.push_back(plan.processes[ending.index].name);
    group.first_ns = std::min(group.first_ns, delay);
    group.last_ns = std::max(group.last_ns, delay);
  }
  std::vector<Followers> followers;
  for (auto& [key, group] : alike) followers.push_back(std::move(group));
  return followers;
}

FirstFailure first_failure(const Failure& failure, const Plan& plan, const JobHistory& history) {
  const ProcessSpec& process = plan.processes[failure.index];
  FirstFailure first;
  first.index = failure.index;
  first.name = process.name;
  first.role = plan.roles[process.role].name;
  first.rank = process.identity.rank;
  first.attempt = failure.attempt;
  first.cause = cause_of(failure, plan, history);
  first.log = plan.log_dir_shown + "/" + process.log_name;
  if (const Ending* ending = history.ending_of(failure.index)) {
    first.pid = ending->pid;
    first.at = ending->at;
    first.after_ns = ending->at - std::min(history.began_at(), ending->at);
    first.followers = followers_of(*ending, plan, history);
  }
  return first;
}

void describe_failure(const Failure& failure, const Plan& plan, const JobHistory& history, Report& report) {
  report.outcome = Outcome::failed;
  report.failed = failure.index;
  report.first = first_failure(failure, plan, history);
  report.cause = report.first->name + " " + report.first->cause.text;
  report.hint = report.first->cause.hint;
  const Ending* decided = deciding(history.ending_of(failure.index), history);
  if (const auto* start = std::get_if<NotStarted>(&failure.cause))
    take_start(start->stage, start->error, report);
  else if (const auto* reason = decided ? std::get_if<ExitReason>(&decided->how) : nullptr)
    take_status(*reason, report);
  else
    take_status(std::get<ExitReason>(failure.cause), report);
}

/// The failure that decided was not here, or there was none here.
bool decided_elsewhere(const JobEnd& end, const Report& report) {
  if (!end.failure) return end.exit_status != report.exit_status;
  return !report.first || report.first->name != end.failure->process || report.first->at != end.failure->at;
}

/// The outcome as the hosts of the job agreed on it.
Report report_of(const JobEnd& end) {
  Report report;
  report.exit_status = end.exit_status;
  report.cause = end.why;
  if (end.exit_status != 0)
    report.outcome = end.exit_status == kTimedOut ? Outcome::timed_out : Outcome::failed;
  report.own_status = !end.failure;
  return report;
}

}  // namespace

std::string_view to_string(Outcome outcome) noexcept {
  constexpr std::string_view kNames[] = {"completed", "failed", "stopped", "timed_out", "refused"};
  return kNames[static_cast<int>(outcome)];
}

Report make_report(const JobState& state, const Plan& plan, const JobHistory& history) {
  Report report;
  if (const auto& failure = state.failure()) {
    describe_failure(*failure, plan, history, report);
    return report;
  }
  const auto own = [&](Outcome outcome, int status, std::string cause) {
    report.outcome = outcome;
    report.exit_status = status;
    report.own_status = true;
    report.cause = std::move(cause);
  };
  if (!history.left_alive().empty())
    own(Outcome::failed, kRefused,
        "process " + std::to_string(history.left_alive().front()) + " was killed and does not end");
  else if (const auto signal = state.stop_signal(); signal && state.drained())
    own(Outcome::stopped, status_of_stop(kDrained),
        "fleetrun got " + signal_name(*signal) + ", and asks to be started again");
  else if (signal)
    own(Outcome::stopped, status_of_stop(*signal), "fleetrun got " + signal_name(*signal));
  else if (state.timed_out())
    own(Outcome::timed_out, kTimedOut, "the time of the job was up (--timeout)");
  else if (state.pod_lost())
    own(Outcome::failed, kRefused, "fleetrun-init, which holds the job's processes, was killed");
  return report;
}

Conclusion conclude(const JobState& state, const Plan& plan, const JobHistory& history,
                    const std::optional<JobEnd>& end) {
  Report here = make_report(state, plan, history);
  if (!end || state.stop_signal() || !decided_elsewhere(*end, here)) return {std::move(here), std::nullopt};
  if (!end->failure) return {report_of(*end), std::nullopt};
  return {report_of(*end), "On " + end->node + ":\n" + end->failure->screen};
}

Report refusal(const Error& error) {
  Report report;
  report.outcome = Outcome::refused;
  report.exit_status = kRefused;
  report.own_status = true;
  report.cause = error.what();
  report.hint = error.hint();
  return report;
}

}  // namespace fleetrun::launcher
