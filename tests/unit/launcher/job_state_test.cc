#include "launcher/job_state.h"

#include <csignal>

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

constexpr Role kServer = Role::server, kTrainer = Role::trainer;
const ExitReason kWell = {};
const ExitReason kKilled = {ExitReason::Kind::signaled, SIGKILL, false};

ExitReason code(int number) {
  return {ExitReason::Kind::exited, number, false};
}

using Actions = std::vector<Action>;

}  // namespace

TEST_CASE("a collective job starts its trainers at once and ends when they have") {
  JobState state({kTrainer, kTrainer});
  CHECK(state.begin() == Actions{StartProcess{0}, StartProcess{1}});
  CHECK(state.on(Exited{0, kWell}).empty());
  CHECK(state.on(Exited{1, kWell}) == Actions{EndJob{}});
  CHECK(state.phase() == Phase::done);
  CHECK_FALSE(state.failure());
}

TEST_CASE("trainers of a ps job wait for the servers, and the servers are stopped after them") {
  JobState state({kServer, kTrainer, kTrainer});
  CHECK(state.begin() == Actions{StartProcess{0}, AwaitServers{}});
  CHECK(state.on(ServersReady{}) == Actions{StartProcess{1}, StartProcess{2}});
  CHECK(state.on(ReadyTimeout{}).empty());
  CHECK(state.on(Exited{2, kWell}).empty());
  CHECK(state.on(Exited{1, kWell}) == Actions{AskToStop{0}, ArmGrace{}});
  CHECK(state.on(Exited{0, {ExitReason::Kind::signaled, SIGTERM, false}}) == Actions{EndJob{}});
  CHECK_FALSE(state.failure());
}

TEST_CASE("servers that do not listen in time hold nobody up, with a warning") {
  JobState state({kServer, kTrainer});
  state.begin();
  CHECK(state.on(ReadyTimeout{}) == Actions{WarnNotReady{}, StartProcess{1}});
  CHECK(state.on(ServersReady{}).empty());
}

TEST_CASE("servers that have all ended well let the trainers start") {
  JobState state({kServer, kServer, kTrainer});
  state.begin();
  CHECK(state.on(Exited{0, kWell}).empty());
  CHECK(state.on(Exited{1, kWell}) == Actions{StartProcess{2}});
  CHECK(state.on(Exited{2, kWell}) == Actions{EndJob{}});
}

TEST_CASE("the first failure decides, and what follows is its consequence") {
  JobState state({kServer, kTrainer, kTrainer});
  state.begin();
  state.on(ServersReady{});
  CHECK(state.on(Exited{2, code(3)}) == Actions{AskToStop{0}, AskToStop{1}, ArmGrace{}});
  CHECK(state.on(Exited{1, code(9)}).empty());
  CHECK(state.on(Exited{0, kKilled}) == Actions{EndJob{}});
  REQUIRE(state.failure());
  CHECK(state.failure()->index == 2);
  CHECK(std::get<ExitReason>(state.failure()->cause) == code(3));
}

TEST_CASE("a server that dies ends the job, before and after the trainers have started") {
  for (const bool started : {false, true}) {
    JobState state({kServer, kTrainer});
    state.begin();
    if (started) state.on(ServersReady{});
    const Actions actions = state.on(Exited{0, kKilled});
    CHECK(actions == (started ? Actions{AskToStop{1}, ArmGrace{}} : Actions{EndJob{}}));
    CHECK(state.failure()->index == 0);
  }
}

TEST_CASE("a server that ends well while trainers run is no failure") {
  JobState state({kServer, kTrainer});
  state.begin();
  state.on(ServersReady{});
  CHECK(state.on(Exited{0, kWell}).empty());
  CHECK(state.on(Exited{1, kWell}) == Actions{EndJob{}});
  CHECK_FALSE(state.failure());
}

TEST_CASE("what does not stop within the grace is killed, once") {
  JobState state({kTrainer, kTrainer});
  state.begin();
  state.on(Exited{0, code(1)});
  CHECK(state.on(GraceElapsed{}) == Actions{KillPod{}});
  CHECK(state.on(GraceElapsed{}).empty());
  CHECK(state.on(Exited{1, kKilled}) == Actions{EndJob{}});
}

TEST_CASE("a signal stops the job, a second one at once, a third changes nothing") {
  JobState state({kTrainer});
  state.begin();
  CHECK(state.on(StopAsked{SIGINT}) == Actions{AskToStop{0}, ArmGrace{}});
  CHECK(state.on(StopAsked{SIGTERM}) == Actions{KillPod{}});
  CHECK(state.on(StopAsked{SIGTERM}).empty());
  CHECK(state.on(Exited{0, kKilled}) == Actions{EndJob{}});
  CHECK(state.stop_signal() == SIGINT);
  CHECK_FALSE(state.failure());
}

TEST_CASE("a signal after a failure hurries the stop and leaves the outcome") {
  JobState state({kTrainer, kTrainer});
  state.begin();
  state.on(Exited{0, code(3)});
  CHECK(state.on(StopAsked{SIGINT}) == Actions{KillPod{}});
  CHECK_FALSE(state.stop_signal());
  CHECK(state.failure()->index == 0);
}

TEST_CASE("a process that cannot be started is a failure like any other") {
  JobState state({kTrainer, kTrainer});
  state.begin();
  CHECK(state.on(NotStarted{1, "exec", 13}) == Actions{AskToStop{0}, ArmGrace{}});
  CHECK(std::get<NotStarted>(state.failure()->cause).stage == "exec");
  CHECK(state.on(NotStarted{0, "exec", 13}) == Actions{EndJob{}});
  CHECK(state.failure()->index == 1);
}

TEST_CASE("a lost pod ends the job at once") {
  JobState state({kTrainer});
  state.begin();
  CHECK(state.on(PodLost{}) == Actions{EndJob{}});
  CHECK(state.pod_lost());
  CHECK(state.on(Exited{0, kKilled}).empty());
}
