#include "launcher/status/job_status.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/job_plan.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using fleetrun::tests::job_plan;
using fleetrun::tests::TempDir;

namespace {

constexpr ExitReason kKilled{ExitReason::Kind::signaled, 9, false};
constexpr ExitReason kWell{ExitReason::Kind::exited, 0, false};

event::ProcessStarted started(std::size_t index, pid_t pid, int attempt = 0) {
  return {.index = index, .pid = pid, .attempt = attempt, .at = 100 + pid};
}

event::ProcessExited exited(std::size_t index, ExitReason reason, bool asked = false) {
  return {
      .index = index, .pid = 1, .attempt = 0, .reason = reason, .asked = asked, .at = 5000, .max_rss_kib = 0};
}

/// The states of all processes, by their first letters.
std::string states(const StatusBoard& board) {
  std::string text;
  for (const ProcessStatus& process : board.status(0).processes) text += to_string(process.state).front();
  return text;
}

}  // namespace

TEST_CASE("a job that runs to its end") {
  const Plan plan = job_plan(2, 1);
  StatusBoard board(plan, 50);
  CHECK(board.phase() == JobPhase::starting);
  CHECK(states(board) == "www");
  board.on_event(event::Contained{"cgroup2", "/sys/fs/cgroup/x", "", 9});
  board.on_event(event::AttemptBegan{0});
  board.on_event(started(0, 10));
  board.on_event(event::RoleReady{0});
  board.on_event(started(1, 11));
  CHECK(board.phase() == JobPhase::starting);
  board.on_event(started(2, 12));
  board.on_event(event::AllRunning{});
  CHECK(board.phase() == JobPhase::running);
  const JobStatus status = board.status(1050);
  CHECK(status.job_id == "default");
  CHECK(status.pod == "abcdef");
  CHECK(status.mode == "ps");
  CHECK(status.containment == "cgroup2");
  CHECK(status.cgroup == "/sys/fs/cgroup/x");
  CHECK(status.init_pid == 9);
  CHECK(status.began_at == 50);
  CHECK(status.now == 1050);
  CHECK(status.processes[2].role == "trainer");
  CHECK(status.processes[2].name == "trainer 1");
  CHECK(status.processes[2].rank == 1);
  CHECK(status.processes[2].pid == 12);
  CHECK(status.processes[2].starts == 1);
  CHECK(status.processes[2].started_at == 112);
  CHECK(status.processes[2].log == "/nowhere/log/abcdef/0/workerlog.1");

  board.on_event(exited(1, kWell));
  board.on_event(exited(2, kWell));
  board.on_event(event::StopBegan{"the trainers have ended", {0}});
  CHECK(board.phase() == JobPhase::stopping);
  CHECK(states(board) == "see");
  board.on_event(exited(0, kKilled, true));
  board.on_event(event::JobEnded{0});
  CHECK(states(board) == "eee");
  CHECK(board.status(0).phase == JobPhase::ended);
  CHECK(board.status(0).exit_status == 0);
}

TEST_CASE("a group restart: all stop, wait, and start again") {
  const Plan plan = job_plan(2);
  StatusBoard board(plan, 0);
  board.on_event(event::AttemptBegan{0});
  board.on_event(started(0, 10));
  board.on_event(started(1, 11));
  board.on_event(exited(1, kKilled));
  CHECK(states(board) == "rf");
  board.on_event(
      event::FailureExplained{1, 0, {FailureKind::out_of_memory, "was killed: out of memory", "", "", ""}});
  board.on_event(
      event::RestartDecided{RestartScope::group, 1, 1, std::chrono::milliseconds(0), "oom, restart 1 of 3"});
  CHECK(board.phase() == JobPhase::restarting);
  CHECK(states(board) == "sf");
  board.on_event(event::StopBegan{"restart", {0}});
  CHECK(board.phase() == JobPhase::restarting);
  CHECK(board.status(0).phase_reason == "oom, restart 1 of 3");
  board.on_event(exited(0, kKilled, true));
  CHECK(states(board) == "ef");
  board.on_event(event::AttemptBegan{1});
  CHECK(board.phase() == JobPhase::starting);
  CHECK(states(board) == "ww");
  board.on_event(started(0, 20, 1));
  board.on_event(started(1, 21, 1));
  CHECK(board.phase() == JobPhase::running);
  const JobStatus status = board.status(0);
  CHECK(status.attempt == 1);
  CHECK(status.processes[1].starts == 2);
  CHECK(status.processes[1].exit == kKilled);
  CHECK(status.processes[1].cause == "was killed: out of memory");
  CHECK(status.processes[1].log == "/nowhere/log/abcdef/1/workerlog.1");
  REQUIRE(status.restarts.size() == 1);
  CHECK(status.restarts[0] == RestartStatus{1, RestartScope::group, "trainer 1", FailureKind::out_of_memory,
                                            "was killed: out of memory", "oom, restart 1 of 3"});
}

TEST_CASE("the world of a job of several hosts, and what follows its end") {
  const Plan plan = job_plan(0, 1);
  StatusBoard board(plan, 0);
  CHECK(board.status(0).generation == 0);
  board.on_event(event::WorldBegan{1, 0, 2, 0, {"h1", "h2"}, "0123456789abcdef"});
  board.on_event(started(0, 10));
  board.on_event(event::AllRunning{});
  board.on_event(event::WorldEnded{"h2 was lost", false});
  CHECK(board.phase() == JobPhase::restarting);
  CHECK(board.status(0).phase_reason == "h2 was lost");
  board.on_event(event::WorldBegan{2, 1, 1, 2, {"h1"}, "0123456789abcdef", {"h1:6001", "h1:6009"}});
  board.on_event(event::AttemptBegan{1});
  CHECK(board.phase() == JobPhase::starting);
  CHECK(board.status(0).generation == 2);
  CHECK(board.status(0).hosts == std::vector<std::string>{"h1"});
  CHECK(board.status(0).servers == std::vector<std::string>{"h1:6001", "h1:6009"});
}

TEST_CASE("a process that is restarted alone leaves the job running") {
  const Plan plan = job_plan(1, 1);
  StatusBoard board(plan, 0);
  board.on_event(started(0, 10));
  board.on_event(started(1, 11));
  board.on_event(exited(0, kKilled));
  board.on_event(event::RestartDecided{RestartScope::process, 0, 1, std::chrono::milliseconds(0), "crash"});
  board.on_event(event::AttemptBegan{1});
  CHECK(board.phase() == JobPhase::running);
  CHECK(states(board) == "wr");
  board.on_event(started(0, 20, 1));
  CHECK(states(board) == "rr");
  CHECK(board.status(0).attempt == 1);
}

TEST_CASE("a process that could not be started is told from one that failed") {
  const Plan plan = job_plan(2);
  StatusBoard board(plan, 0);
  board.on_event(event::ProcessNotStarted{1, 0, "exec", 2});
  CHECK(states(board) == "wn");
  board.on_event(exited(0, ExitReason{ExitReason::Kind::exited, 3, false}));
  CHECK(states(board) == "fn");
}

TEST_CASE("the last line is what a terminal shows last") {
  CHECK(last_shown_line("") == "");
  CHECK(last_shown_line("one\ntwo\n") == "two");
  CHECK(last_shown_line("one\ntwo\n\n  \n") == "two");
  CHECK(last_shown_line("one\ntw") == "tw");
  CHECK(last_shown_line(" 10%\r 20%\r 30%") == " 30%");
  CHECK(last_shown_line(" 10%\r 20%\r") == " 20%");
  CHECK(last_shown_line("windows\r\n") == "windows");
  CHECK(last_shown_line("\x1b[31mred\x1b[0m \x1b]0;title\aend\x1b]0;t\x1b\\.\n") == "red end.");
  CHECK(last_shown_line("a\tb\x01\x7f"
                        "c\n") == "a bc");
  CHECK(last_shown_line("caf\xc3\xa9 \xff \xe2\x82") == "caf\xc3\xa9 ? ??");
  CHECK(last_shown_line("\x1b[") == "");
  CHECK(last_shown_line("\x1b") == "");
  CHECK(last_shown_line(std::string(500, 'x')) == std::string(200, 'x'));
  CHECK(last_shown_line("abc\xc3\xa9", 4) == "abc");
}

TEST_CASE("usage and last lines are added when asked") {
  const TempDir directory;
  const Plan plan = job_plan(2, 0, directory.path().string());
  StatusBoard board(plan, 0);
  board.on_event(started(0, 10));
  std::filesystem::create_directories(directory.path() / "abcdef/0");
  directory.write("abcdef/0/workerlog.0", "step 1\nstep 2\n");
  std::filesystem::create_directory(directory.path() / "10");
  directory.write("10/stat", "10 (a) R 1 10 10 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 7 0 3 0 0");
  JobStatus status = board.status(0);
  CHECK(!status.processes[0].usage);
  add_usage(status, directory.path().string());
  add_last_lines(status);
  REQUIRE(status.processes[0].usage);
  CHECK(status.processes[0].usage->state == 'R');
  CHECK(!status.processes[1].usage);
  CHECK(status.processes[0].last_line == "step 2");
  CHECK(status.processes[1].last_line == "");
}
