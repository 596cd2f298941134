#include "launcher/record/flight_record.h"

#include <signal.h>

#include <doctest/doctest.h>

#include "launcher/job/job_history.h"
#include "launcher/job/job_state.h"
#include "launcher/record/replay.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

Plan two_trainers() {
  Plan plan;
  plan.job_id = "default";
  plan.pod_name = "abcdef";
  plan.log_dir_shown = "log";
  plan.roles.resize(1);
  plan.roles[0].name = "trainer";
  plan.roles[0].grace = std::chrono::seconds(30);
  for (std::size_t i = 0; i < 2; ++i) {
    ProcessSpec process;
    process.name = "trainer " + std::to_string(i);
    process.identity.rank = static_cast<int>(i);
    process.argv = {"python", "train.py", "--token=hidemenow"};
    process.environment = {{"PADDLE_TRAINER_ID", "0"},
                           {"WORK", "mine"},
                           {"FLEETRUN_SECRET", "x"},
                           {"PADDLE_TRAINER_ENDPOINTS", "h:1,h:2"}};
    process.identity.trainers = {{"h", 1}, {"h", 2}};
    process.log_name = "workerlog." + std::to_string(i);
    plan.processes.push_back(process);
  }
  return plan;
}

std::string screen(const Report& report, const Plan&, const JobHistory&, std::string_view) {
  return report.cause + "\n";
}

/// Trainer 1 exits with 3, and trainer 0 is stopped for it.
std::string recorded_failure() {
  const Plan plan = two_trainers();
  const Redactor redactor;
  RecordOpening opening;
  opening.version = "test";
  opening.plan = recorded_plan(plan);
  std::string bytes = to_frame(opening, redactor);
  JobState state(plan.roles, roles_of(plan), RestartPolicy(plan.restart, 0));
  JobHistory history;
  state.begin();
  const auto told = [&](const JobEvent& event) {
    history.on_event(event);
    bytes += to_frame(Told{{}, event}, redactor);
  };
  const auto decided = [&](const Event& event) {
    bytes += to_frame(Decision{event, words_of(state.on(event))}, redactor);
  };
  for (std::size_t i = 0; i < 2; ++i) {
    told(event::ProcessStarted{i, 100 + static_cast<pid_t>(i), 0, 1'000});
    decided(Started{i});
  }
  told(event::ProcessExited{1, 101, 0, {ExitReason::Kind::exited, 3, false}, false, 2'000, 5});
  decided(Exited{1, {ExitReason::Kind::exited, 3, false}});
  history.on_record(SignalSent{0, SIGTERM});
  bytes += to_frame(SignalSent{0, SIGTERM}, redactor);
  told(event::ProcessExited{0, 100, 0, {ExitReason::Kind::signaled, SIGTERM, false}, true, 3'000, 5});
  decided(Exited{0, {ExitReason::Kind::signaled, SIGTERM, false}});
  Cause cause;
  cause.text = "exited with 3";
  told(event::FailureExplained{1, 0, cause});
  decided(Explained{1, {FailureKind::crash, "trainer 1", "exit 3", {}, std::nullopt}, false});
  told(event::JobEnded{3});
  const Report report = make_report(state, plan, history);
  RecordEnd end;
  end.ended = {4'000, 4'000};
  end.verdict = to_json(report, plan, history, end.ended);
  end.screen = screen(report, plan, history, {});
  return bytes + to_frame(end, redactor);
}

Replayed replay_of(std::string_view bytes) {
  return replay(parse_record(bytes), screen, [](const Told&, const Plan&) {});
}

}  // namespace

TEST_CASE("a recorded failure comes out as it was") {
  const Replayed replayed = replay_of(recorded_failure());
  CHECK(replayed.differences.empty());
  CHECK(replayed.decisions == 5);
  CHECK(replayed.report.exit_status == 3);
  CHECK(replayed.screen == "trainer 1 exited with 3\n");
}

TEST_CASE("the plan that is recorded has what fleetrun set, and no secrets") {
  const FlightRecord record = parse_record(recorded_failure());
  const ProcessSpec& process = record.opening.plan.processes[1];
  CHECK(process.environment == Environ{{"PADDLE_TRAINER_ID", "0"}});
  CHECK(process.argv.back() == "--token=[hidden]");
  CHECK(process.identity.trainers.empty());
  CHECK(process.identity.rank == 1);
}

TEST_CASE("a record that says something else is told apart") {
  FlightRecord record = parse_record(recorded_failure());
  record.end->screen += "x";
  for (RecordEntry& entry : record.entries) {
    if (auto* decision = std::get_if<Decision>(&entry)) decision->actions.push_back("dance");
  }
  const auto differences = replay(record, screen, [](const Told&, const Plan&) {}).differences;
  REQUIRE(differences.size() == 6);
  CHECK(differences[0] == "decision 1 was \"dance\", and is \"\"");
  CHECK(differences[5] == "the screen is another one");
}

TEST_CASE("a record without an end is that of a job that runs, also when it ends within an entry") {
  const std::string whole = recorded_failure();
  const FlightRecord record = parse_record(std::string_view(whole).substr(0, whole.size() - 7));
  CHECK(!record.end);
  CHECK(replay(record, screen, [](const Told&, const Plan&) {}).report.exit_status == 3);
}

TEST_CASE("no record, another format, or an index that the plan has not: refused") {
  CHECK_THROWS_WITH_AS(parse_record(""), "this is no record of a job: it has no beginning", Error);
  RecordOpening opening;
  opening.format = kRecordFormat + 1;
  opening.version = "9.9";
  CHECK_THROWS_WITH_AS(to_frame(opening, {}),
                       "this record was written by fleetrun 9.9, in another format than this one reads",
                       Error);
  FlightRecord record = parse_record(recorded_failure());
  record.entries.push_back(Decision{Started{2}, {}});
  CHECK_THROWS_WITH_AS(replay(record, screen, [](const Told&, const Plan&) {}),
                       "the record names a process or role that its plan has not", Error);
}
