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
  plan.processes[1].program = "/bin/x";
  return plan;
}

Report report_after(const std::vector<Event>& events) {
  JobState state({Role::server, Role::trainer});
  state.begin();
  for (const Event& event : events) state.on(event);
  return make_report(state, two_processes());
}

ExitReason code(int number) {
  return {ExitReason::Kind::exited, number, false};
}

}  // namespace

TEST_CASE("the exit status is a table") {
  CHECK(report_after({ServersReady{}, Exited{1, code(0)}, Exited{0, code(0)}}).exit_status == 0);
  for (int status = 1; status <= 255; ++status)
    CHECK(report_after({ServersReady{}, Exited{1, code(status)}}).exit_status == status);
  for (int number = 1; number < 32; ++number) {
    const Report report = report_after({Exited{0, {ExitReason::Kind::signaled, number, false}}});
    CHECK(report.exit_status == 128 + number);
    CHECK(report.shown_code == -number);
  }
  CHECK(report_after({StopAsked{SIGINT}}).exit_status == 130);
  CHECK(report_after({StopAsked{SIGTERM}}).exit_status == 143);
  CHECK(report_after({StopAsked{SIGHUP}}).exit_status == 129);
  CHECK(report_after({PodLost{}}).exit_status == 125);
  CHECK(report_after({ServersReady{}, NotStarted{1, "exec", ENOENT}}).exit_status == 127);
  CHECK(report_after({ServersReady{}, NotStarted{1, "exec", ENOEXEC}}).exit_status == 126);
  CHECK(report_after({ServersReady{}, NotStarted{1, "directory", ENOENT}}).exit_status == 126);
}

TEST_CASE("the cause names role, rank and reason") {
  CHECK(report_after({Exited{0, {ExitReason::Kind::signaled, SIGKILL, false}}}).cause ==
        "server 0 was killed by SIGKILL");
  CHECK(report_after({ServersReady{}, Exited{1, code(3)}}).cause == "trainer 0 exited with 3");
  CHECK(report_after({ServersReady{}, NotStarted{1, "exec", EACCES}}).cause ==
        "trainer 0 could not be started: /bin/x: Permission denied (exec)");
  CHECK(report_after({StopAsked{SIGTERM}}).cause == "fleetrun got SIGTERM");
}
