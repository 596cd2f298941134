#include "launcher/report.h"

#include <cerrno>
#include <csignal>

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

Plan two_processes() {
  Plan plan;
  plan.processes.resize(2);
  plan.processes[0].identity.role = Role::server;
  plan.roles.resize(2);
  plan.roles[0].name = "server";
  plan.roles[0].serves = true;
  plan.roles[0].ready.kind = Readiness::Kind::port;
  plan.roles[1].name = "trainer";
  plan.roles[1].after = {0};
  plan.processes[1].program = "/bin/x";
  return plan;
}

/// What the supervisor does: others end when they are asked to, and failures are explained.
void answer(JobState& state, const Event& event) {
  for (const Action& action : state.on(event)) {
    if (const auto* stop = std::get_if<AskToStop>(&action)) answer(state, Exited{stop->index, {}});
    if (const auto* explain = std::get_if<ExplainFailure>(&action))
      answer(state, Explained{explain->index, {}, false});
  }
}

Report report_after(const std::vector<Event>& events) {
  const Plan plan = two_processes();
  JobState state(plan.roles, {0, 1}, RestartPolicy({}, 1));
  state.begin();
  for (const Event& event : events) answer(state, event);
  return make_report(state, plan);
}

ExitReason code(int number) {
  return {ExitReason::Kind::exited, number, false};
}

}  // namespace

TEST_CASE("the exit status is a table") {
  CHECK(report_after({RoleReady{0}, Exited{1, code(0)}, Exited{0, code(0)}}).exit_status == 0);
  for (int status = 1; status <= 255; ++status)
    CHECK(report_after({RoleReady{0}, Exited{1, code(status)}}).exit_status == status);
  for (int number = 1; number < 32; ++number) {
    const Report report = report_after({Exited{0, {ExitReason::Kind::signaled, number, false}}});
    CHECK(report.exit_status == 128 + number);
    CHECK(report.shown_code == -number);
  }
  CHECK(report_after({StopAsked{SIGINT}}).exit_status == 130);
  CHECK(report_after({StopAsked{SIGTERM}}).exit_status == 143);
  CHECK(report_after({StopAsked{SIGHUP}}).exit_status == 129);
  CHECK(report_after({TimedOut{}}).exit_status == 124);
  CHECK(report_after({PodLost{}}).exit_status == 125);
  CHECK(report_after({RoleReady{0}, NotStarted{1, "exec", ENOENT}}).exit_status == 127);
  CHECK(report_after({RoleReady{0}, NotStarted{1, "exec", ENOEXEC}}).exit_status == 126);
  CHECK(report_after({RoleReady{0}, NotStarted{1, "directory", ENOENT}}).exit_status == 126);
}

TEST_CASE("the cause names role, rank and reason") {
  CHECK(report_after({Exited{0, {ExitReason::Kind::signaled, SIGKILL, false}}}).cause ==
        "server 0 was killed by SIGKILL");
  CHECK(report_after({RoleReady{0}, Exited{1, code(3)}}).cause == "trainer 0 exited with 3");
  CHECK(report_after({RoleReady{0}, NotStarted{1, "exec", EACCES}}).cause ==
        "trainer 0 could not be started: /bin/x: Permission denied (exec)");
  CHECK(report_after({StopAsked{SIGTERM}}).cause == "fleetrun got SIGTERM");
}
