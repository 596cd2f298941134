// A pod in a job of several hosts: what it reports, and what it waits for.
#include <csignal>

#include <doctest/doctest.h>

#include "launcher/job/job_state.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

using Words = std::vector<std::string>;
constexpr ExitReason kWell = {};
constexpr ExitReason kTerminated = {ExitReason::Kind::signaled, SIGTERM, false};
constexpr ExitReason kOne = {ExitReason::Kind::exited, 1, false};

RolePlan role(const char* name, RestartScope restart) {
  RolePlan plan;
  plan.name = name;
  plan.restart = restart;
  return plan;
}

JobState trainers(std::size_t count) {
  return JobState({role("trainer", RestartScope::group)}, std::vector<std::size_t>(count, 0),
                  RestartPolicy(RestartRules(), 1), InWorld{0});
}

JobState server_and_trainer() {
  RolePlan server = role("server", RestartScope::process), trainer = role("trainer", RestartScope::group);
  server.serves = true;
  return JobState({server, trainer}, {0, 1}, RestartPolicy(RestartRules(), 1), InWorld{0});
}

Words words(const std::vector<Action>& actions) {
  Words result;
  for (const Action& action : actions) {
    if (!std::holds_alternative<Tell>(action)) result.push_back(to_string(action));
  }
  return result;
}

Explained explained(std::size_t index) {
  Explained event;
  event.index = index;
  return event;
}

}  // namespace

TEST_CASE("in a world: work that is done is reported, and the pod ends when the job does") {
  JobState state = trainers(1);
  state.begin();
  CHECK(words(state.on(Exited{0, kWell})) == Words{"report done"});
  CHECK(state.phase() == Phase::running);
  CHECK(words(state.on(JobDecided{})) == Words{"end"});
  CHECK(state.phase() == Phase::done);
}

TEST_CASE("in a world: servers go on after the trainers of this host, until the job is over") {
  JobState state = server_and_trainer();
  state.begin();
  CHECK(words(state.on(Exited{1, kWell})) == Words{"report done"});
  CHECK(state.alive(0));
  CHECK(words(state.on(JobDecided{})) == Words{"stop 0", "grace of role 0"});
  CHECK(words(state.on(Exited{0, kTerminated})) == Words{"end"});
  CHECK(!state.failure());
}

TEST_CASE("in a world: a host of servers alone is done at once, and goes on") {
  RolePlan server = role("server", RestartScope::process);
  server.serves = true;
  JobState state({server}, {0}, RestartPolicy(RestartRules(), 1), InWorld{0});
  CHECK(words(state.begin()) == Words{"start 0 (attempt 0)", "report done"});
  CHECK(state.alive(0));
}

TEST_CASE("in a world: a failure is reported when it is seen and when it is explained, and others decide") {
  JobState state = trainers(2);
  state.begin();
  CHECK(words(state.on(Exited{1, kOne})) == Words{"report failing 1", "stop 0", "grace of role 0"});
  CHECK(words(state.on(Exited{0, kTerminated})) == Words{"explain 1"});
  CHECK(words(state.on(explained(1))) == Words{"report failure 1", "sweep all"});
  CHECK(words(state.on(Swept{})).empty());
  CHECK(state.phase() == Phase::rendezvous);

  SUBCASE("for another world") {
    CHECK(words(state.on(WorldEnds{"trainer 1 failed"})) == Words{"report drained"});
    CHECK(words(state.on(WorldBegins{3})) ==
          Words{"prepare 3", "start 0 (attempt 3)", "start 1 (attempt 3)"});
    CHECK(!state.failure());
    CHECK(state.attempt() == 3);
  }
  SUBCASE("against it") {
    CHECK(words(state.on(JobDecided{"trainer 1 failed"})) == Words{"end"});
    CHECK(state.failure()->index == 1);
  }
  SUBCASE("or the user stops it meanwhile") {
    CHECK(words(state.on(StopAsked{SIGINT})) == Words{"end"});
    CHECK(state.stop_signal() == SIGINT);
  }
}

TEST_CASE("in a world: its end stops everything, and what is left is swept before that is reported") {
  JobState state = trainers(2);
  state.begin();
  CHECK(words(state.on(WorldEnds{"h2 was lost"})) == Words{"stop 0", "stop 1", "grace of role 0"});
  state.on(Exited{0, kTerminated});
  CHECK(words(state.on(Exited{1, kTerminated})) == Words{"sweep all"});
  CHECK(words(state.on(Swept{})) == Words{"report drained"});
  CHECK(words(state.on(WorldEnds{"h3 came"})) == Words{"report drained"});  // another one, before it began
  CHECK(words(state.on(WorldBegins{1})).front() == "prepare 1");
}

TEST_CASE("in a world: a pod that was cut off is killed, and reports nothing until it is asked") {
  JobState state = trainers(1);
  state.begin();
  CHECK(words(state.on(WorldEnds{"no word", true})) == Words{"kill all"});
  CHECK(words(state.on(Exited{0, {ExitReason::Kind::signaled, SIGKILL, false}})) == Words{"sweep all"});
  CHECK(words(state.on(Swept{})).empty());
  CHECK(words(state.on(WorldEnds{"epoch 4"})) == Words{"report drained"});
}

TEST_CASE("in a world: the end of the job during a stop ends the pod after it") {
  JobState state = trainers(2);
  state.begin();
  state.on(Exited{0, kOne});
  CHECK(words(state.on(JobDecided{"trainer 5 of h2 failed"})).empty());
  CHECK(words(state.on(Exited{1, kTerminated})) == Words{"explain 0"});
  CHECK(words(state.on(explained(0))) == Words{"report failure 0", "end"});
}

TEST_CASE("in a world: the user's signal ends this pod, whatever the others do") {
  JobState state = trainers(1);
  state.begin();
  CHECK(words(state.on(StopAsked{SIGTERM})) == Words{"stop 0", "grace of role 0"});
  CHECK(words(state.on(Exited{0, kTerminated})) == Words{"end"});
  CHECK(state.stop_signal() == SIGTERM);
}
