#include "cli/failure_screen.h"

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

constexpr std::int64_t kMs = 1'000'000;

Plan plan_of(std::size_t processes) {
  Plan plan;
  plan.processes.resize(processes);
  for (std::size_t i = 0; i < processes; ++i) plan.processes[i].name = "trainer " + std::to_string(i);
  return plan;
}

Report failed() {
  Report report;
  FirstFailure first;
  first.index = 5;
  first.name = "trainer 5";
  first.pid = 4711;
  first.attempt = 1;
  first.after_ns = 12'300 * kMs;
  first.log = "log/workerlog.5";
  first.cause.text = "exited with 1: ValueError: x";
  report.first = first;
  return report;
}

std::string screen(const Report& report, const JobHistory& history = {}, std::string_view last_lines = "") {
  return cli::failure_screen(report, plan_of(8), history, last_lines);
}

}  // namespace

TEST_CASE("a job without a failed process has no screen") {
  CHECK(screen({}).empty());
}

TEST_CASE("the screen says who, when, where, what followed and what to do") {
  Report report = failed();
  report.first->cause.detail = "core: /x/core.1\n";
  report.first->cause.hint = "sleep on it";
  report.first->followers = {{"exited with 1", false, {"trainer 0", "trainer 2"}, 5 * kMs, 480 * kMs},
                             {"was killed by SIGPIPE", false, {"trainer 1"}, 12 * kMs, 12 * kMs},
                             {"exited with 3", false, {"trainer 3"}, -7 * kMs, -7 * kMs},
                             {"exited with 4", true, {"trainer 4"}, 20 * kMs, 20 * kMs},
                             {"ended with 143", true, {"trainer 6", "trainer 7"}, 20 * kMs, 21 * kMs},
                             {"was killed by SIGKILL", true, {"trainer 0", "trainer 1"}, kMs, kMs}};
  CHECK(screen(report) ==
        "first failure: trainer 5 exited with 1: ValueError: x\n"
        "  attempt 1, pid 4711, 12.3 s after the start, log log/workerlog.5\n"
        "  core: /x/core.1\n"
        "  then trainer 0 and trainer 2, 5.0 ms to 480 ms later: exited with 1\n"
        "  then trainer 1, 12 ms later: was killed by SIGPIPE\n"
        "  before it, being quicker to die, trainer 3, 7.0 ms earlier: exited with 3\n"
        "  then 1 other exited with 4 while fleetrun stopped the job\n"
        "  then 2 others ended with 143 after fleetrun stopped them\n"
        "  then 2 others were killed by SIGKILL while fleetrun stopped the job\n"
        "  hint: sleep on it\n");
}

TEST_CASE("many names become a number") {
  Report report = failed();
  report.first->followers = {
      {"exited with 1", false, {"trainer 0", "trainer 1", "trainer 2", "trainer 3", "trainer 4"}, kMs, kMs}};
  CHECK(screen(report).find("then trainer 0, trainer 1 and 3 others, 1.0 ms later: exited with 1\n") !=
        std::string::npos);
}

TEST_CASE("the recognised block is shown, without its middle when it is long, and not twice") {
  Report report = failed();
  report.first->cause.block = "Traceback\nValueError: x\n";
  CHECK(screen(report, {}, "line\nTraceback\nValueError: x\n").find("  | ") == std::string::npos);
  std::string noise;
  for (int i = 0; i < 30; ++i) noise += "step\n";
  CHECK(screen(report, {}, noise).find("  | Traceback\n  | ValueError: x\n") != std::string::npos);
  report.first->cause.block = "begin\n" + noise + "end\n";
  const std::string text = screen(report, {}, noise);
  CHECK(text.find("  | begin\n") != std::string::npos);
  CHECK(text.find("  | … 9 lines …\n") != std::string::npos);
  CHECK(text.find("  | end\n") != std::string::npos);
}

TEST_CASE("without a recognised block the last lines are shown, without colours") {
  std::string log;
  for (int i = 0; i < 30; ++i) log += "\x1b[31mstep " + std::to_string(i) + "\x1b[0m\n";
  const std::string text = screen(failed(), {}, log);
  CHECK(text.find("  | step 29\n") != std::string::npos);
  CHECK(text.find("  | step 20\n") != std::string::npos);
  CHECK(text.find("step 19") == std::string::npos);
}

TEST_CASE("earlier attempts are listed, and why there is no other") {
  JobHistory history;
  Cause cause;
  cause.text = "was killed by SIGKILL";
  history.on_event(event::FailureExplained{3, 0, cause});
  history.on_event(event::RestartDecided{RestartScope::group, 3, 1, {}, "crash, restart 1 of 1"});
  history.on_event(event::FailureExplained{5, 1, cause});
  history.on_event(event::GaveUp{"the budget of 1 for crashes is used up"});
  const std::string text = screen(failed(), history);
  CHECK(text.find("  restarts so far: 1\n    attempt 0: trainer 3 was killed by SIGKILL\n"
                  "  no restart: the budget of 1 for crashes is used up\n") != std::string::npos);
}

TEST_CASE("the screen of a parameter-server job says what became of the tables") {
  Plan plan = plan_of(8);
  plan.processes[0].identity.role = Role::server;
  const std::string lost = cli::failure_screen(failed(), plan, {}, "");
  CHECK(lost.find("  tables: lost, but for what the script has saved; --max_restart=N") != std::string::npos);
  plan.processes[0].environment.set("FLEETRUN_PS_CHECKPOINT", "/kept here");
  const std::string kept = cli::failure_screen(failed(), plan, {}, "");
  CHECK(
      kept.find("  tables: kept in /kept here; --ps_checkpoint='/kept here' --ps_checkpoint_found=resume") !=
      std::string::npos);
  Report gone = failed();
  gone.first->cause.text =
      "exited with 1: fleetrun.Error: server 0 has lost its tables: what it kept is gone";
  const std::string server_lost = cli::failure_screen(gone, plan, {}, "");
  CHECK(server_lost.find("  tables: lost with that server's, but for what the script has saved") !=
        std::string::npos);
}
