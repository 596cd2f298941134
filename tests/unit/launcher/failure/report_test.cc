#include "launcher/failure/report.h"

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
  plan.processes[0].name = "server 0";
  plan.processes[1].name = "trainer 0";
  plan.processes[1].role = 1;
  plan.processes[1].program = "/bin/x";
  plan.processes[1].log_name = "workerlog.0";
  plan.log_dir_shown = "log";
  return plan;
}

/// What the supervisor does: others end when they are asked to, and failures are explained.
class Driver {
 public:
  explicit Driver(const Plan& plan) : plan_(plan), state_(plan.roles, {0, 1}, RestartPolicy({}, 1)) {
    for (std::size_t i = 0; i < 2; ++i)
      history_.on_event(event::ProcessStarted{i, 100 + static_cast<pid_t>(i), 0, 1});
    state_.begin();
  }

  void happen(const Event& event) {
    now_ += 1'000'000;
    if (const auto* exited = std::get_if<Exited>(&event))
      history_.on_event(
          event::ProcessExited{exited->index, -1, 0, exited->reason, state_.asked(exited->index), now_, 0});
    if (const auto* start = std::get_if<NotStarted>(&event))
      history_.on_event(event::ProcessNotStarted{start->index, 0, start->stage, start->error});
    for (const Action& action : state_.on(event)) {
      if (const auto* stop = std::get_if<AskToStop>(&action)) {
        history_.on_record(SignalSent{stop->index, SIGTERM});
        happen(Exited{stop->index, {ExitReason::Kind::signaled, SIGTERM, false}});
      }
      if (const auto* explain = std::get_if<ExplainFailure>(&action))
        happen(Explained{blame.value_or(explain->index), {}, false});
    }
  }

  void leave_alive(pid_t pid) { history_.on_record(LeftAlive{pid}); }
  Report report() const { return make_report(state_, plan_, history_); }

  std::optional<std::size_t> blame;  // of the explanation; the first by time otherwise

 private:
  const Plan& plan_;
  JobState state_;
  JobHistory history_;
  std::int64_t now_ = 1;
};

Report report_after(const std::vector<Event>& events, std::optional<std::size_t> blame = {}) {
  const Plan plan = two_processes();
  Driver driver(plan);
  driver.blame = blame;
  for (const Event& event : events) driver.happen(event);
  return driver.report();
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
  CHECK(report_after({StopAsked{SIGUSR1, true}}).exit_status == 75);
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
  CHECK(report_after({StopAsked{SIGUSR1, true}}).cause ==
        "fleetrun got SIGUSR1, and asks to be started again");
}

TEST_CASE("fleetrun's own statuses are told from a process's, and every outcome has its name") {
  const Report well = report_after({RoleReady{0}, Exited{1, code(0)}});
  CHECK(well.outcome == Outcome::completed);
  const Report failed = report_after({RoleReady{0}, Exited{1, code(143)}});
  CHECK(failed.outcome == Outcome::failed);
  CHECK_FALSE(failed.own_status);
  const Report stopped = report_after({StopAsked{SIGTERM}});
  CHECK(stopped.outcome == Outcome::stopped);
  CHECK(stopped.own_status);
  CHECK(report_after({RoleReady{0}, NotStarted{1, "exec", ENOENT}}).own_status);
  const Report late = report_after({RoleReady{0}, TimedOut{}});
  CHECK(late.outcome == Outcome::timed_out);
  CHECK(late.exit_status == 124);
  const Report refused = refusal(Error(ErrorKind::host, "no room", "make room"));
  CHECK(refused.outcome == Outcome::refused);
  CHECK(refused.exit_status == 125);
  CHECK(refused.cause == "no room");
  for (int i = 0; i < 5; ++i) CHECK_FALSE(to_string(static_cast<Outcome>(i)).empty());
}

TEST_CASE("the first failure has its place and time, and those that followed are folded") {
  const Report report = report_after({RoleReady{0}, Exited{1, code(3)}});
  REQUIRE(report.first.has_value());
  CHECK(report.first->name == "trainer 0");
  CHECK(report.first->role == "trainer");
  CHECK(report.first->pid == 101);
  CHECK(report.first->log == "log/workerlog.0");
  CHECK(report.first->after_ns == 2'000'000);
  REQUIRE(report.first->followers.size() == 1);
  CHECK(report.first->followers[0] == Followers{"ended with 143", true, {"server 0"}, 1'000'000, 1'000'000});
}

TEST_CASE("when the root was stopped by fleetrun, the status is that of the one that died of itself") {
  const Report report = report_after({RoleReady{0}, Exited{1, code(7)}}, 0);
  CHECK(report.first->name == "server 0");
  CHECK(report.exit_status == 7);
}

TEST_CASE("a stop that leaves a process alive says so by its status") {
  const Plan plan = two_processes();
  Driver driver(plan);
  driver.happen(StopAsked{SIGTERM});
  driver.leave_alive(4711);
  const Report report = driver.report();
  CHECK(report.exit_status == 125);
  CHECK(report.own_status);
  CHECK(report.cause == "process 4711 was killed and does not end");
}
