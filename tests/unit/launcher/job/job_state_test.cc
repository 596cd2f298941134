#include "launcher/job/job_state.h"

#include <csignal>

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

constexpr std::size_t kServer = 0, kTrainer = 1;  // the roles of a ps job
const ExitReason kWell = {};
const ExitReason kKilled = {ExitReason::Kind::signaled, SIGKILL, false};
const ExitReason kTerminated = {ExitReason::Kind::signaled, SIGTERM, false};

using Words = std::vector<std::string>;

ExitReason code(int number) {
  return {ExitReason::Kind::exited, number, false};
}

RestartRules budget_of(int each) {
  RestartRules rules;
  rules.budgets.fill(each);
  return rules;
}

RolePlan role(const char* name, RestartScope restart) {
  RolePlan plan;
  plan.name = name;
  plan.restart = restart;
  return plan;
}

JobState collective(std::size_t trainers, RestartRules rules = {}) {
  return JobState({role("trainer", RestartScope::group)}, std::vector<std::size_t>(trainers, 0),
                  RestartPolicy(rules, 1));
}

JobState ps(const std::vector<std::size_t>& role_of, RestartRules rules = {}) {
  RolePlan servers = role("server", RestartScope::process), trainers = role("trainer", RestartScope::group);
  servers.serves = true;
  servers.ready.kind = Readiness::Kind::port;
  trainers.after = {kServer};
  return JobState({servers, trainers}, role_of, RestartPolicy(rules, 1));
}

/// The actions as text, without what is only told.
Words words(const std::vector<Action>& actions) {
  Words result;
  for (const Action& action : actions) {
    if (!std::holds_alternative<Tell>(action)) result.push_back(to_string(action));
  }
  return result;
}

template <class Told>
const Told* told(const std::vector<Action>& actions) {
  for (const Action& action : actions) {
    const auto* tell = std::get_if<Tell>(&action);
    if (const auto* event = tell ? std::get_if<Told>(&tell->event) : nullptr) return event;
  }
  return nullptr;
}

Explained because(std::size_t index, std::string signature = "s") {
  Explained explained;
  explained.index = index;
  explained.record.who = std::to_string(index);
  explained.record.signature = std::move(signature);
  return explained;
}

}  // namespace

TEST_CASE("a collective job starts its trainers at once and ends when they have") {
  JobState state = collective(2);
  CHECK(words(state.begin()) == Words{"start 0 (attempt 0)", "start 1 (attempt 0)"});
  CHECK(state.phase() == Phase::running);
  CHECK(words(state.on(Exited{0, kWell})).empty());
  CHECK(words(state.on(Exited{1, kWell})) == Words{"end"});
  CHECK(state.phase() == Phase::done);
  CHECK_FALSE(state.failure());
}

TEST_CASE("trainers of a ps job wait for the servers, and the servers are stopped after them") {
  JobState state = ps({kServer, kTrainer, kTrainer});
  CHECK(words(state.begin()) == Words{"start 0 (attempt 0)", "await role 0"});
  CHECK(words(state.on(RoleReady{0})) == Words{"start 1 (attempt 0)", "start 2 (attempt 0)"});
  CHECK(words(state.on(ReadyTimeout{0})).empty());
  CHECK(words(state.on(Exited{2, kWell})).empty());
  CHECK(words(state.on(Exited{1, kWell})) == Words{"stop 0", "grace of role 0"});
  CHECK(words(state.on(Exited{0, kTerminated})) == Words{"end"});
  CHECK_FALSE(state.failure());
}

TEST_CASE("of a role that has more processes than are wanted, those that are wanted run") {
  RolePlan servers = role("server", RestartScope::process), trainers = role("trainer", RestartScope::group);
  servers.serves = true;
  servers.wanted = 1;
  trainers.after = {kServer};
  JobState job({servers, trainers}, {kServer, kServer, kServer, kTrainer}, RestartPolicy({}, 1));
  CHECK(words(job.begin()) == Words{"start 0 (attempt 0)", "start 3 (attempt 0)"});
  CHECK(job.phase() == Phase::running);
  CHECK(job.count_wanted() == 2);
  CHECK(words(job.on(CountWanted{kServer, 3})) == Words{"start 1 (attempt 0)", "start 2 (attempt 0)"});
  CHECK(words(job.on(CountWanted{kServer, 1})).empty());
  CHECK(words(job.on(Exited{2, kWell})).empty());
  CHECK(words(job.on(CountWanted{kServer, 3})) == Words{"start 2 (attempt 0)"});
  CHECK(words(job.on(Exited{3, kWell})) == Words{"stop 0", "stop 1", "stop 2", "grace of role 0"});
}

TEST_CASE("servers that do not listen in time hold nobody up, with a warning") {
  JobState state = ps({kServer, kTrainer});
  state.begin();
  const auto actions = state.on(ReadyTimeout{0});
  CHECK(words(actions) == Words{"start 1 (attempt 0)"});
  REQUIRE(told<event::Warning>(actions));
  CHECK(told<event::Warning>(actions)->text.starts_with("not every server accepts connections"));
  CHECK(words(state.on(RoleReady{0})).empty());
}

TEST_CASE("servers that have all ended well let the trainers start") {
  JobState state = ps({kServer, kServer, kTrainer});
  state.begin();
  CHECK(words(state.on(Exited{0, kWell})).empty());
  CHECK(words(state.on(Exited{1, kWell})) == Words{"start 2 (attempt 0)"});
  CHECK(words(state.on(Exited{2, kWell})) == Words{"end"});
}

TEST_CASE("a chain of roles starts one after the other, and one without a sign is ready when it is started") {
  RolePlan a = role("a", RestartScope::nobody), b = a, c = a;
  b.name = "b";
  b.after = {0};
  b.ready.kind = Readiness::Kind::log_line;
  c.name = "c";
  c.after = {1, 0};
  JobState state({a, b, c}, {0, 1, 2}, RestartPolicy({}, 1));
  CHECK(words(state.begin()) == Words{"start 0 (attempt 0)", "start 1 (attempt 0)", "await role 1"});
  CHECK(state.phase() == Phase::starting);
  CHECK(words(state.on(RoleReady{1})) == Words{"start 2 (attempt 0)"});
  CHECK(state.phase() == Phase::running);
}

TEST_CASE("the first failure stops the others, and the root of it is what Explained says") {
  JobState state = ps({kServer, kTrainer, kTrainer});
  state.begin();
  state.on(RoleReady{0});
  const auto stop = state.on(Exited{2, code(3)});
  CHECK(words(stop) == Words{"stop 0", "stop 1", "grace of role 0", "grace of role 1"});
  CHECK(told<event::StopBegan>(stop)->waiting_for == std::vector<std::size_t>{0, 1});
  CHECK(words(state.on(Exited{1, code(9)})).empty());
  CHECK(words(state.on(Exited{0, kKilled})) == Words{"explain 2"});
  CHECK(words(state.on(because(1))) == Words{"end"});
  REQUIRE(state.failure());
  CHECK(state.failure()->index == 1);
  CHECK(std::get<ExitReason>(state.failure()->cause) == code(9));
}

TEST_CASE("a server that dies ends the job, before and after the trainers have started") {
  for (const bool started : {false, true}) {
    JobState state = ps({kServer, kTrainer});
    state.begin();
    if (started) state.on(RoleReady{0});
    const Words actions = words(state.on(Exited{0, kKilled}));
    CHECK(actions == (started ? Words{"stop 1", "grace of role 1"} : Words{"explain 0"}));
    if (started) CHECK(words(state.on(Exited{1, kTerminated})) == Words{"explain 0"});
    CHECK(words(state.on(because(0))) == Words{"end"});
    CHECK(state.failure()->index == 0);
  }
}

TEST_CASE("a server that ends well while trainers run is no failure") {
  JobState state = ps({kServer, kTrainer});
  state.begin();
  state.on(RoleReady{0});
  CHECK(words(state.on(Exited{0, kWell})).empty());
  CHECK(words(state.on(Exited{1, kWell})) == Words{"end"});
  CHECK_FALSE(state.failure());
}

TEST_CASE("each role has a grace of its own, and what does not stop within it is killed, once") {
  JobState state = ps({kServer, kTrainer, kTrainer});
  state.begin();
  state.on(RoleReady{0});
  state.on(Exited{1, code(1)});
  CHECK(words(state.on(GraceElapsed{kTrainer})) == Words{"kill 2"});
  CHECK(words(state.on(GraceElapsed{kTrainer})) == Words{"kill 2"});
  CHECK(state.phase() == Phase::stopping);
  CHECK(words(state.on(GraceElapsed{kServer})) == Words{"kill 0"});
  CHECK(state.phase() == Phase::killing);
  CHECK(words(state.on(GraceElapsed{kServer})).empty());
  CHECK(words(state.on(Exited{2, kKilled})).empty());
  CHECK(words(state.on(Exited{0, kKilled})) == Words{"explain 1"});
}

TEST_CASE("a signal stops the job, a second one at once, a hundred more change nothing") {
  JobState state = collective(1);
  state.begin();
  CHECK(words(state.on(StopAsked{SIGINT})) == Words{"stop 0", "grace of role 0"});
  CHECK(words(state.on(StopAsked{SIGTERM})) == Words{"kill all"});
  for (int i = 0; i < 100; ++i) CHECK(words(state.on(StopAsked{SIGTERM})).empty());
  CHECK(words(state.on(Exited{0, kKilled})) == Words{"end"});
  CHECK(state.stop_signal() == SIGINT);
  CHECK_FALSE(state.failure());
}

TEST_CASE("a signal after a failure hurries the stop, leaves the outcome, and there is no further attempt") {
  JobState state = collective(2, budget_of(5));
  state.begin();
  state.on(Exited{0, code(3)});
  CHECK(words(state.on(StopAsked{SIGINT})) == Words{"kill all"});
  CHECK(words(state.on(Exited{1, kKilled})) == Words{"explain 0"});
  CHECK(words(state.on(because(0))) == Words{"end"});
  CHECK_FALSE(state.stop_signal());
  CHECK(state.failure()->index == 0);
}

TEST_CASE("a process that cannot be started is a failure like any other, and is not tried again") {
  JobState state = collective(2, budget_of(5));
  state.begin();
  CHECK(words(state.on(NotStarted{1, "exec", 13})) == Words{"stop 0", "grace of role 0"});
  CHECK(words(state.on(NotStarted{0, "exec", 13})) == Words{"explain 1"});
  Explained explained = because(1);
  explained.record.kind = FailureKind::not_started;
  CHECK(words(state.on(explained)) == Words{"end"});
  CHECK(std::get<NotStarted>(state.failure()->cause).stage == "exec");
}

TEST_CASE("a lost pod ends the job at once") {
  JobState state = collective(1);
  state.begin();
  CHECK(words(state.on(PodLost{})) == Words{"end"});
  CHECK(state.pod_lost());
  CHECK(words(state.on(Exited{0, kKilled})).empty());
}

TEST_CASE("the whole group is started again, on an empty pod, with a new plan and the next number") {
  JobState state = collective(2, budget_of(2));
  state.begin();
  state.on(Exited{1, code(1)});
  CHECK(words(state.on(Exited{0, kTerminated})) == Words{"explain 1"});
  const auto decided = state.on(because(1));
  CHECK(words(decided) == Words{"sweep all"});
  REQUIRE(told<event::RestartDecided>(decided));
  CHECK(told<event::RestartDecided>(decided)->why == "crash, restart 1 of 2");
  CHECK(told<event::RestartDecided>(decided)->next_attempt == 1);
  CHECK(words(state.on(Swept{})) == Words{"rest all 0 ms"});
  CHECK(words(state.on(BackoffElapsed{})) ==
        Words{"prepare 1", "start 0 (attempt 1)", "start 1 (attempt 1)"});
  CHECK_FALSE(state.asked(0));
  state.on(Exited{0, kWell});
  CHECK(words(state.on(Exited{1, kWell})) == Words{"end"});
  CHECK_FALSE(state.failure());
}

TEST_CASE("when the budget is used up, the last attempt's failure is the outcome") {
  JobState state = collective(1, budget_of(1));
  state.begin();
  state.on(Exited{0, code(1)});
  state.on(because(0, "a"));
  state.on(Swept{});
  state.on(BackoffElapsed{});
  CHECK(words(state.on(Exited{0, code(2)})) == Words{"explain 0"});
  const auto over = state.on(because(0, "b"));
  CHECK(words(over) == Words{"end"});
  CHECK(told<event::GaveUp>(over)->why == "all 1 restarts after crash are used up");
  CHECK(std::get<ExitReason>(state.failure()->cause) == code(2));
  CHECK(state.failure()->attempt == 1);
}

TEST_CASE("a server is started again alone, and the trainers go on") {
  JobState state = ps({kServer, kTrainer}, budget_of(3));
  state.begin();
  state.on(RoleReady{0});
  CHECK(words(state.on(Exited{0, kKilled})) == Words{"explain 0 alone"});
  CHECK(words(state.on(because(0))) == Words{"sweep 0"});
  CHECK(words(state.on(Swept{0})) == Words{"rest 0 0 ms"});
  CHECK(words(state.on(BackoffElapsed{0})) == Words{"start 0 (attempt 1)"});
  CHECK(words(state.on(Exited{1, kWell})) == Words{"stop 0", "grace of role 0"});
  CHECK(words(state.on(Exited{0, kTerminated})) == Words{"end"});
  CHECK_FALSE(state.failure());
}

TEST_CASE("one that cannot go on alone has all started again, which counts for no restart") {
  RolePlan trainers = role("trainer", RestartScope::process);
  JobState state({trainers}, {0, 0}, RestartPolicy(budget_of(1), 1));
  const Explained alone = because(1, "python Error: trainer # cannot go on alone: the others have …");
  state.begin();
  state.on(Exited{1, kKilled});
  CHECK(words(state.on(because(1))) == Words{"sweep 1"});
  state.on(Swept{1});
  CHECK(words(state.on(BackoffElapsed{1})) == Words{"start 1 (attempt 1)"});
  CHECK(words(state.on(Exited{1, code(1)})) == Words{"explain 1 alone"});
  CHECK(words(state.on(alone)) == Words{"stop 0", "grace of role 0"});
  CHECK(words(state.on(Exited{0, kTerminated})) == Words{"explain 1"});
  const auto decided = state.on(alone);
  CHECK(words(decided) == Words{"sweep all"});
  CHECK(told<event::RestartDecided>(decided)->why ==
        "it was started again alone, and cannot go on without the others");
  CHECK(words(state.on(Swept{})) == Words{"rest all 0 ms"});
  CHECK(words(state.on(BackoffElapsed{})) ==
        Words{"prepare 2", "start 0 (attempt 2)", "start 1 (attempt 2)"});
  // What says so now was not started again alone: it is a failure like any other.
  CHECK(words(state.on(Exited{1, code(1)})) == Words{"explain 1 alone"});
  const auto over = state.on(alone);
  CHECK(told<event::GaveUp>(over)->why == "all 1 restarts after crash are used up");
}

TEST_CASE("a server that has lost its tables is not started again") {
  JobState state = ps({kServer, kTrainer}, budget_of(9));
  state.begin();
  state.on(RoleReady{0});
  state.on(Exited{0, code(1)});
  const auto decided = state.on(because(0, "python Error: server # has lost its tables: what …"));
  CHECK(words(decided) == Words{"stop 1", "grace of role 1"});
  CHECK(told<event::GaveUp>(decided)->why == "0 has lost its tables, and would be without them each time");
}

TEST_CASE("in which start of all a role was ready is known afterwards") {
  JobState state = ps({kServer, kTrainer}, budget_of(3));
  state.begin();
  CHECK_FALSE(state.ready_in(0));
  state.on(RoleReady{0});
  CHECK(state.ready_in(0) == 0);
  state.on(Exited{1, kKilled});  // with it all are started again
  state.on(Exited{0, kTerminated});
  state.on(because(1));
  state.on(Swept{});
  state.on(BackoffElapsed{});
  CHECK(state.group_attempt() == 1);
  CHECK(state.ready_in(0) == 0);
  state.on(RoleReady{0});
  CHECK(state.ready_in(0) == 1);
}

TEST_CASE("trainers that end well while a server rests end the job, and it is not started again") {
  JobState state = ps({kServer, kTrainer}, budget_of(3));
  state.begin();
  state.on(RoleReady{0});
  state.on(Exited{0, kKilled});
  state.on(because(0));
  state.on(Swept{0});
  CHECK(words(state.on(Exited{1, kWell})) == Words{"end"});
  CHECK(words(state.on(BackoffElapsed{0})).empty());
}

TEST_CASE("a server whose budget is used up fails the job") {
  JobState state = ps({kServer, kTrainer}, budget_of(1));
  state.begin();
  state.on(RoleReady{0});
  state.on(Exited{0, code(1)});
  state.on(because(0, "a"));
  state.on(Swept{0});
  state.on(BackoffElapsed{0});
  CHECK(words(state.on(Exited{0, code(2)})) == Words{"explain 0 alone"});
  CHECK(words(state.on(because(0, "b"))) == Words{"stop 1", "grace of role 1"});
  CHECK(words(state.on(Exited{1, kTerminated})) == Words{"end"});
  CHECK(state.failure()->index == 0);
  CHECK(std::get<ExitReason>(state.failure()->cause) == code(2));
}

TEST_CASE("Ctrl-C between two attempts ends the job, as stopped") {
  for (const bool resting : {false, true}) {
    JobState state = collective(1, budget_of(3));
    state.begin();
    state.on(Exited{0, code(1)});
    state.on(because(0));
    if (resting) state.on(Swept{});
    CHECK(words(state.on(StopAsked{SIGINT})) == (resting ? Words{"end"} : Words{}));
    if (!resting) CHECK(words(state.on(Swept{})) == Words{"end"});
    CHECK(state.stop_signal() == SIGINT);
    CHECK_FALSE(state.failure());
  }
}

TEST_CASE("a port that somebody took is worth one more start, without any budget") {
  JobState state = collective(1);
  state.begin();
  state.on(Exited{0, code(1)});
  Explained clash = because(0);
  clash.port_clash = true;
  CHECK(words(state.on(clash)) == Words{"sweep all"});
  state.on(Swept{});
  CHECK(words(state.on(BackoffElapsed{})) == Words{"prepare 1", "start 0 (attempt 1)"});
  state.on(Exited{0, code(1)});
  CHECK(words(state.on(clash)) == Words{"end"});
}

TEST_CASE("a process that hangs is killed, and that is its failure even if it ends well") {
  JobState state = collective(2, budget_of(1));
  state.begin();
  CHECK(words(state.on(Hung{{1}})) == Words{"kill 1"});
  CHECK(words(state.on(Exited{1, kWell})) == Words{"stop 0", "grace of role 0"});
  CHECK(words(state.on(Exited{0, kTerminated})) == Words{"explain 1"});
  CHECK(state.hung(1));
  CHECK(words(state.on(because(1))) == Words{"sweep all"});
  state.on(Swept{});
  state.on(BackoffElapsed{});
  CHECK_FALSE(state.hung(1));
}

TEST_CASE("the time of a job can be up while it runs and between attempts") {
  JobState state = collective(1);
  state.begin();
  CHECK(words(state.on(TimedOut{})) == Words{"stop 0", "grace of role 0"});
  CHECK(words(state.on(Exited{0, kTerminated})) == Words{"end"});
  CHECK(state.timed_out());
  CHECK_FALSE(state.failure());

  JobState between = collective(1, budget_of(3));
  between.begin();
  between.on(Exited{0, code(1)});
  between.on(because(0));
  between.on(Swept{});
  CHECK(words(between.on(TimedOut{})) == Words{"end"});
  CHECK(between.timed_out());
}

namespace {

constexpr std::size_t kSpare = 1;  // the role of who stands by, in a job with --on_failure=replace

/// Two trainers and one process that stands by, all of them at work.
JobState replacing(RestartRules rules = {}) {
  RolePlan trainers = role("trainer", RestartScope::group), spares = trainers;
  spares.name = "spare";
  spares.serves = true;
  spares.stands_by_for = 0;
  JobState state({trainers, spares}, {0, 0, kSpare}, RestartPolicy(rules, 1));
  state.begin();
  state.on(MemberSaid{.index = 0, .what = MemberSaid::What::trains});
  state.on(MemberSaid{.index = 1, .what = MemberSaid::What::trains});
  state.on(MemberSaid{.index = 2, .what = MemberSaid::What::waits});
  return state;
}

}  // namespace

TEST_CASE("a trainer that fails is replaced, and is started again to stand by") {
  JobState state = replacing();
  CHECK(words(state.on(Exited{1, kKilled})) == Words{"explain 1 alone"});
  CHECK(state.phase() == Phase::running);
  CHECK(words(state.on(because(1))) == Words{"sweep 1"});
  CHECK(words(state.on(Swept{1})) == Words{"rest 1 0 ms"});
  CHECK(words(state.on(BackoffElapsed{1})) == Words{"start 1 (attempt 1)"});
  CHECK(state.stands_by(1));
  const auto actions =
      state.on(MemberSaid{.index = 0, .what = MemberSaid::What::leaves, .generation = 0, .step = 5});
  const auto* began = told<event::GenerationBegan>(actions);
  REQUIRE(began);
  CHECK(began->seats == std::vector<std::size_t>{0, 2});
  CHECK(state.role_of(2) == 0);
  CHECK(state.role_of(1) == kSpare);

  CHECK(words(state.on(Exited{2, kWell})).empty());
  CHECK(words(state.on(Exited{0, kWell})) == Words{"stop 1", "grace of role 1"});
  CHECK(words(state.on(Exited{1, kTerminated})) == Words{"end"});
  CHECK_FALSE(state.failure());
}

TEST_CASE("one that stands by fails for itself") {
  JobState state = replacing();
  CHECK(words(state.on(Exited{2, code(1)})) == Words{"explain 2 alone"});
  CHECK(words(state.on(because(2))) == Words{"sweep 2"});
  CHECK(state.phase() == Phase::running);
}

TEST_CASE("where nobody can take the place all are started again, as often as --max_restart says") {
  JobState state = replacing(budget_of(1));
  CHECK(words(state.on(Exited{1, kKilled})) == Words{"explain 1 alone"});
  CHECK(words(state.on(Exited{0, kKilled})) == Words{"stop 2", "grace of role 1"});
  CHECK(words(state.on(Exited{2, kTerminated})) == Words{"explain 0"});
  CHECK(words(state.on(because(0))) == Words{"sweep all"});
  CHECK(words(state.on(Swept{})) == Words{"rest all 0 ms"});
  CHECK(words(state.on(BackoffElapsed{})) ==
        Words{"prepare 1", "start 0 (attempt 1)", "start 1 (attempt 1)", "start 2 (attempt 1)"});
  CHECK(state.role_of(1) == 0);
  CHECK(state.stands_by(2));
}

TEST_CASE("a trainer that ends while another waits for its place to be taken fails the job") {
  JobState state = replacing();
  CHECK(words(state.on(Exited{1, kKilled})) == Words{"explain 1 alone"});
  CHECK(words(state.on(Exited{0, kWell})) == Words{"stop 2", "grace of role 1"});
  CHECK(words(state.on(Exited{2, kTerminated})) == Words{"explain 1"});
}
