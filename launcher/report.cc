// Exit status: 0, the first failing process's own code, 128 + its signal, 128 + the signal that fleetrun got,
// 124 when the time was up, 127 or 126 for a program that did not start, 125 when fleetrun-init was lost.
#include "launcher/report.h"

#include <cerrno>
#include <system_error>

#include "launcher/program.h"

namespace fleetrun::launcher {
namespace {

constexpr int kTimedOut = 124;

void describe_exit(const ExitReason& reason, Report& report) {
  report.exit_status = exit_status(reason);
  report.shown_code = reason.kind == ExitReason::Kind::signaled ? -reason.code : reason.code;
  report.cause.append(" ").append(to_string(reason));
}

void describe_start(const NotStarted& start, const ProcessSpec& process, Report& report) {
  report.exit_status = report.shown_code =
      start.stage == "exec" && start.error == ENOENT ? kNotFound : kNotStartable;
  report.cause += " could not be started: " + process.program + ": " +
                  std::generic_category().message(start.error) + " (" + start.stage + ")";
  if (start.error == ENOENT)
    report.hint = "the file is there, so its #! line names an interpreter that is not";
  if (start.error == ENOEXEC) report.hint = "give it a #! line, or run it with its interpreter";
  if (start.error == E2BIG) report.hint = "shorten the arguments or the environment";
  if (start.stage == "fork") report.hint = "raise the limit on processes (ulimit -u), or start fewer";
}

}  // namespace

Report make_report(const JobState& state, const Plan& plan) {
  Report report;
  if (const auto& failure = state.failure()) {
    const ProcessSpec& process = plan.processes[failure->index];
    report.failed = failure->index;
    report.cause = process_name(process.identity.role, process.identity.rank);
    if (const auto* reason = std::get_if<ExitReason>(&failure->cause))
      describe_exit(*reason, report);
    else
      describe_start(std::get<NotStarted>(failure->cause), process, report);
  } else if (const auto signal = state.stop_signal()) {
    report.exit_status = 128 + *signal;
    report.cause = "fleetrun got " + signal_name(*signal);
  } else if (state.timed_out()) {
    report.exit_status = kTimedOut;
    report.cause = "the time of the job was up (--timeout)";
  } else if (state.pod_lost()) {
    report.exit_status = 125;
    report.cause = "fleetrun-init, which holds the job's processes, was killed";
  }
  return report;
}

}  // namespace fleetrun::launcher
