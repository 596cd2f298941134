#include "launcher/status/job_status_json.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "tests/support/job_plan.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

JobStatus busy_status() {
  const Plan plan = tests::job_plan(3, 1);
  StatusBoard board(plan, 0);
  board.on_event(event::Contained{"subreaper", "", "no cgroup", 77});
  board.on_event(event::ProcessStarted{0, 100, 0, kSecond});
  board.on_event(event::ProcessStarted{1, 101, 0, 2 * kSecond});
  board.on_event(event::ProcessStarted{2, 102, 0, 4 * kSecond});
  board.on_event(
      event::ProcessExited{1, 101, 0, {ExitReason::Kind::exited, 3, false}, false, 8 * kSecond, 0});
  board.on_event(
      event::ProcessExited{2, 102, 0, {ExitReason::Kind::signaled, 11, true}, false, 8 * kSecond, 0});
  board.on_event(event::FailureExplained{1, 0, {FailureKind::crash, "exited with 3", "", "", ""}});
  board.on_event(
      event::RestartDecided{RestartScope::group, 1, 1, std::chrono::milliseconds(0), "crash, 1 of 3"});
  board.on_event(event::LogsTruncated{0, 10, ENOSPC});
  JobStatus status = board.status(8 * kSecond);
  status.processes[0].usage = ResourceUsage{1.5, 4096, 2, 'S'};
  status.processes[0].last_line = "epoch \"3\"";
  return status;
}

}  // namespace

TEST_CASE("a status is read back as it was written") {
  const JobStatus status = busy_status();
  CHECK(job_status_from_json(to_json(status)) == status);
  JobStatus ended = status;
  ended.exit_status = 137;
  ended.generation = 3;
  ended.hosts = {"h1", "h2"};
  ended.servers = {"h1:8000", "[::1]:8001"};
  ended.processes[0].metrics =
      ServerMetrics{1.5, {{"emb", 7, 2, 1}}, {{"pull", 1, 0, 0, 8, 8, 0.1, {{9, 1}}}}};
  CHECK(job_status_from_json(to_json(ended)) == ended);
}

TEST_CASE("every state, phase, scope and kind is written and read") {
  JobStatus status = busy_status();
  for (int i = 0; i <= static_cast<int>(JobPhase::ended); ++i) {
    status.phase = static_cast<JobPhase>(i);
    CHECK(job_status_from_json(to_json(status)).phase == status.phase);
  }
  for (int i = 0; i <= static_cast<int>(ProcessState::not_started); ++i) {
    status.processes[3].state = static_cast<ProcessState>(i);
    CHECK(job_status_from_json(to_json(status)).processes[3].state == status.processes[3].state);
  }
}

TEST_CASE("the fields are the documented ones") {
  const std::string json = to_json(busy_status());
  CHECK(
      json.starts_with(R"({"schema":1,"job_id":"default","pod":"abcdef","mode":"ps","phase":"restarting",)"));
  CHECK(json.find(R"("exit":{"status":139,"signal":"SIGSEGV","core":true})") != json.npos);
  CHECK(
      json.find(
          R"("cpu_seconds":1.5,"rss_bytes":4096,"processes":2,"kernel_state":"S","last_line":"epoch \"3\"")") !=
      json.npos);
  CHECK(json.find('\n') == json.npos);
}

TEST_CASE("bytes that are not UTF-8 do no harm") {
  JobStatus status = busy_status();
  status.log_dir = "/tmp/\xff";
  CHECK(job_status_from_json(to_json(status)).log_dir == "/tmp/\xef\xbf\xbd");
}

TEST_CASE("what is no status of this schema is refused with a hint") {
  std::string other = to_json(busy_status());
  other.replace(other.find("1,"), 1, "2");
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1]"), std::string("{\"schema\":1}"), other,
        to_json(busy_status()).substr(0, 100)}) {
    try {
      job_status_from_json(text);
      FAIL_CHECK("not refused: ", text);
    } catch (const Error& error) {
      CHECK(std::string(error.what()).starts_with("the status of the job "));
      CHECK(error.hint() == "use the fleetrun that runs the job");
    }
  }
  std::string unknown = to_json(busy_status());
  unknown.replace(unknown.find("restarting"), 10, "flying");
  CHECK_THROWS_WITH_AS(job_status_from_json(unknown),
                       "the status of a job says flying, which this fleetrun does not know", Error);
}
