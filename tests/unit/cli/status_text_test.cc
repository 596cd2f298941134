#include "cli/status_text.h"

#include <doctest/doctest.h>

#include "runtime/base/text.h"
#include "tests/support/job_plan.h"

using namespace fleetrun;
using namespace fleetrun::cli;
using namespace fleetrun::launcher;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

JobStatus some_status(double cpu, std::int64_t now) {
  const Plan plan = tests::job_plan(2, 1);
  StatusBoard board(plan, 0);
  board.on_event(event::Contained{"pidns", "", "", 5});
  board.on_event(event::ProcessStarted{0, 100, 0, 0});
  board.on_event(event::ProcessStarted{1, 101, 0, kSecond});
  board.on_event(event::ProcessStarted{2, 102, 0, kSecond});
  board.on_event(
      event::ProcessExited{2, 102, 0, {ExitReason::Kind::signaled, 9, false}, false, 31 * kSecond, 0});
  JobStatus status = board.status(now);
  status.processes[0].usage = ResourceUsage{cpu, 3 << 20, 1, 'S'};
  status.processes[1].usage = ResourceUsage{0, 1536, 1, 'T'};
  status.processes[1].last_line = "epoch 3 of 10: loss \xcf\x80";
  return status;
}

}  // namespace

TEST_CASE("a line per process says who, how and what last") {
  const JobStatus status = some_status(40, 80 * kSecond);
  CHECK(status_table(status, nullptr, {200, 0}) ==
        "job default, pod abcdef, ps: running, attempt 0, 1m20s, held by pidns\n"
        "process        pid  state        att    cpu  memory    time  last line\n"
        "server 0       100  running        0    50%    3.0M   1m20s  \n"
        "trainer 0      101  stopped        0     0%    1.5K   1m19s  epoch 3 of 10: loss \xcf\x80\n"
        "trainer 1      102  SIGKILL        0      -       -     30s  \n");
}

TEST_CASE("CPU is the share since the last look") {
  const JobStatus before = some_status(40, 80 * kSecond), now = some_status(43, 82 * kSecond);
  CHECK(status_table(now, &before, {200, 0}).find(" 150% ") != std::string::npos);
  JobStatus restarted = before;
  restarted.processes[0].pid = 7;  // another process then
  CHECK(status_table(now, &restarted, {200, 0}).find(" 52% ") != std::string::npos);
}

TEST_CASE("what does not fit is cut or counted") {
  const std::string table = status_table(some_status(40, 80 * kSecond), nullptr, {30, 4});
  for (const std::string& line : split(table, '\n')) CHECK(line.size() <= 30);
  CHECK(table.find("\nand 2 more\n") != std::string::npos);
  CHECK(split(table, '\n').size() == 5);
  CHECK(cut_to_columns("a\xcf\x80"
                       "b",
                       2) == "a\xcf\x80");
  CHECK(cut_to_columns("ab", 0) == "");
}

TEST_CASE("restarts, the end and the reason of a phase are told") {
  JobStatus status = some_status(1, 2 * kSecond);
  status.restarts.push_back(
      {1, RestartScope::group, "trainer 1", FailureKind::crash, "exited with 3", "restart 1 of 3"});
  status.phase = JobPhase::restarting;
  status.phase_reason = "crash";
  status.exit_status = 3;
  status.logs_truncated = true;
  const std::string table = status_table(status, nullptr, {200, 0});
  CHECK(table.starts_with(
      "job default, pod abcdef, ps: restarting (crash), exit status 3, attempt 0, 2s, held by pidns, "
      "logs truncated\n"));
  CHECK(table.ends_with("restarts: 1, the last because trainer 1 exited with 3 (restart 1 of 3)\n"));
}

TEST_CASE("the world of a job of several hosts is told") {
  JobStatus status = some_status(1, 2 * kSecond);
  status.generation = 4;
  status.hosts = {"h1", "h2", "h3"};
  CHECK(status_table(status, nullptr, {200, 0}).find(", epoch 4 with 3 hosts, held by") != std::string::npos);
}

TEST_CASE("sizes and times are short") {
  CHECK(short_bytes(0) == "0");
  CHECK(short_bytes(1023) == "1023");
  CHECK(short_bytes(1024) == "1.0K");
  CHECK(short_bytes(10.0 * 1024 * 1024) == "10M");
  CHECK(short_bytes(3.5 * 1024 * 1024 * 1024) == "3.5G");
  CHECK(short_time(-1) == "0s");
  CHECK(short_time(59.9) == "59s");
  CHECK(short_time(61) == "1m01s");
  CHECK(short_time(3660) == "1h01m");
  CHECK(short_time(90'000) == "1d01h");
}

TEST_CASE("parameter servers have a line of their own, with the rates since the last look") {
  JobStatus status = some_status(40, 80 * kSecond);
  ServerMetrics metrics;
  metrics.uptime_seconds = 10;
  metrics.tables = {{"emb", 12345, 5000, 400}, {"fc", std::nullopt, 10, 10}};
  metrics.calls = {{"pull", 100, 1, 2, 3000, 4000, 0.5, {{1000, 90}, {20000, 10}}}};
  status.processes[0].metrics = metrics;
  CHECK(status_table(status, nullptr, {200, 0})
            .find("server        rows  pulls/s   keys/s      p99 pushes/s   keys/s      p99      now\n"
                  "server 0     12.3k       10      501     20us        0       41        -        2\n") !=
        std::string::npos);
  JobStatus later = status;
  later.processes[0].metrics->uptime_seconds = 12;
  later.processes[0].metrics->calls[0].calls = 150;
  later.processes[0].metrics->calls[0].latency_ns = {{1000, 140}, {20000, 10}};
  CHECK(status_table(later, &status, {200, 0})
            .find("server 0     12.3k       25        0      1us        0        0        -        2\n") !=
        std::string::npos);
}
