#include "launcher/model/injection.h"

#include <csignal>

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using std::chrono::milliseconds;

namespace {

const std::vector<InjectionTarget> kJob = {{"server", 0, true},
                                           {"server", 1, true},
                                           {"trainer", 0, false},
                                           {"trainer", 1, false},
                                           {"trainer", 2, false}};

InjectionPlan planned(std::string_view spec, int attempt = 0, std::uint64_t seed = 1) {
  const auto injections = parse_injections(spec);
  check_injections(injections, kJob);
  return plan_injections(injections, kJob, attempt, seed);
}

struct Refusal {
  std::string what, hint;
};

Refusal refusal_of(std::string_view spec) {
  try {
    planned(spec);
  } catch (const Error& error) {
    return {error.what(), error.hint()};
  }
  return {"accepted", ""};
}

}  // namespace

TEST_CASE("a signal for a rank at a time is one planned signal of the first attempt") {
  const InjectionPlan plan = planned("kill rank=1 at=2s");
  REQUIRE(plan.signals.size() == 1);
  CHECK(plan.signals[0] == PlannedSignal{.target = Injection::Target::process,
                                         .index = 3,
                                         .signal = SIGKILL,
                                         .moment = Injection::Moment::elapsed,
                                         .at = milliseconds(2000),
                                         .step = 0,
                                         .what = "SIGKILL to trainer 1, 2 s into attempt 0"});
  CHECK(planned("kill rank=1 at=2s", 1).signals.empty());
  CHECK(planned("kill rank=1 at=2s attempt=1", 1).signals.size() == 1);
  CHECK(planned("kill rank=1 at=2s attempt=any", 7).signals.size() == 1);
}

TEST_CASE("signals go by any of their names") {
  const std::pair<const char*, int> names[] = {{"kill", SIGKILL},    {"SIGSTOP", SIGSTOP}, {"cont", SIGCONT},
                                               {"abort", SIGABRT},   {"abrt", SIGABRT},    {"segv", SIGSEGV},
                                               {"SigUsr1", SIGUSR1}, {"bus", SIGBUS},      {"term", SIGTERM}};
  for (const auto& [name, number] : names) {
    CAPTURE(name);
    CHECK(parse_injections(std::string(name) + " rank=0").at(0).signal == number);
  }
}

TEST_CASE("clauses are independent, and blanks and a last semicolon do not matter") {
  const InjectionPlan plan = planned(
      "  stop rank=0 role=server at=started;kill  rank=all at=500ms ;launcher term at=1s; init kill ; ");
  REQUIRE(plan.signals.size() == 6);
  CHECK(plan.signals[0].what == "SIGSTOP to server 0 as soon as it is started, in attempt 0");
  CHECK(plan.signals[0].index == 0);
  CHECK(plan.signals[1].what == "SIGKILL to trainer 0, 0.5 s into attempt 0");
  CHECK(plan.signals[3].index == 4);
  CHECK(plan.signals[4].what == "SIGTERM to fleetrun, 1 s into attempt 0");
  CHECK(plan.signals[5].target == Injection::Target::init);
  CHECK(plan.signals[5].moment == Injection::Moment::started);
}

TEST_CASE("a slow start delays its process only") {
  const InjectionPlan plan = planned("slow-start rank=1 by=500ms; slow-start rank=all role=server by=1s");
  CHECK(plan.signals.empty());
  CHECK(plan.start_delays == std::vector<milliseconds>{milliseconds(1000), milliseconds(1000),
                                                       milliseconds(0), milliseconds(500), milliseconds(0)});
  CHECK(planned("slow-start rank=1 by=500ms", 1).start_delays == std::vector<milliseconds>(5));
}

TEST_CASE("a step is waited for") {
  const auto injections = parse_injections("segv rank=2 at=step:120");
  CHECK(needs_heartbeats(injections));
  CHECK_FALSE(needs_heartbeats(parse_injections("segv rank=2 at=12s")));
  const InjectionPlan plan = planned("segv rank=2 at=step:120");
  CHECK(plan.signals.at(0).step == 120);
  CHECK(plan.signals.at(0).what == "SIGSEGV to trainer 2 at step 120 of attempt 0");
}

TEST_CASE("one seed draws one course, another seed another one") {
  constexpr std::string_view kSpec =
      "kill rank=any at=1s..90s attempt=any; stop rank=all chance=0.5 attempt=any; slow-start rank=0 "
      "by=0s..9s";
  CHECK(needs_seed(parse_injections(kSpec)));
  CHECK_FALSE(needs_seed(parse_injections("kill rank=all at=1s")));
  std::size_t different = 0;
  for (int attempt = 0; attempt < 20; ++attempt) {
    CHECK(planned(kSpec, attempt, 5) == planned(kSpec, attempt, 5));
    different += planned(kSpec, attempt, 5) != planned(kSpec, attempt, 6);
  }
  CHECK(different >= 19);
}

TEST_CASE("draws cover their range and nothing else") {
  std::size_t struck[5] = {}, stops = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const InjectionPlan plan = planned("kill rank=any at=1s..2s; stop rank=0 chance=0.25", 0, seed);
    REQUIRE(plan.signals.size() >= 1);
    CHECK(plan.signals[0].at >= milliseconds(1000));
    CHECK(plan.signals[0].at <= milliseconds(2000));
    ++struck[plan.signals[0].index];
    stops += plan.signals.size() - 1;
  }
  CHECK(struck[0] + struck[1] == 0);  // servers are not meant without role=server
  for (const std::size_t index : {2, 3, 4}) {
    CHECK(struck[index] > 900);
    CHECK(struck[index] < 1100);
  }
  CHECK(stops > 650);
  CHECK(stops < 850);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CHECK(planned("kill rank=0 chance=0", 0, seed).signals.empty());
    CHECK(planned("kill rank=0 chance=1", 0, seed).signals.size() == 1);
  }
}

TEST_CASE("what is wrong in a clause is said with the clause and an action") {
  struct Row {
    const char *spec, *what, *hint;
  };
  const Row rows[] = {
      {"", "--inject '': nothing is said", "write for example kill rank=1 at=2s"},
      {" ; ", "--inject ' ; ': a clause is empty", "write for example kill rank=1 at=2s"},
      {"kill rank=1;;kill rank=0", "--inject 'kill rank=1;;kill rank=0': a clause is empty",
       "write for example kill rank=1 at=2s"},
      {"kil rank=1", "--inject 'kil rank=1': there is no action 'kil'", "did you mean kill?"},
      {"explode rank=1", "--inject 'explode rank=1': there is no action 'explode'",
       "there are kill, stop, cont, term, segv, abort, int, hup, usr1, usr2, slow-start, launcher, init"},
      {"kill", "--inject 'kill': whom SIGKILL is for is not said", "add rank=N, rank=any or rank=all"},
      {"kill rnk=1", "--inject 'kill rnk=1': there is no key 'rnk'", "did you mean rank?"},
      {"kill 1", "--inject 'kill 1': '1' is not of the form key=value", "clauses are separated by ';'"},
      {"kill rank=one", "--inject 'kill rank=one': 'rank=one': a rank, any or all is needed", ""},
      {"kill rank=-1", "--inject 'kill rank=-1': 'rank=-1': a rank, any or all is needed", ""},
      {"kill rank=1 rank=2", "--inject 'kill rank=1 rank=2': rank is given twice", ""},
      {"kill rank=1 role=", "--inject 'kill rank=1 role=': 'role=': the name of a role is needed", ""},
      {"kill rank=1 at=soon",
       "--inject 'kill rank=1 at=soon': 'at=soon': a time such as 2s, 500ms or 1s..5s is needed", ""},
      {"kill rank=1 at=5s..1s",
       "--inject 'kill rank=1 at=5s..1s': 'at=5s..1s': a time such as 2s, 500ms or 1s..5s is needed", ""},
      {"kill rank=1 at=step:x",
       "--inject 'kill rank=1 at=step:x': 'at=step:x': a step such as step:120 is needed", ""},
      {"kill rank=1 attempt=-1",
       "--inject 'kill rank=1 attempt=-1': 'attempt=-1': a number from 0, or any is needed", ""},
      {"kill rank=1 chance=1.5",
       "--inject 'kill rank=1 chance=1.5': 'chance=1.5': a number from 0 to 1 is needed", ""},
      {"kill rank=1 chance=nan",
       "--inject 'kill rank=1 chance=nan': 'chance=nan': a number from 0 to 1 is needed", ""},
      {"kill rank=1 by=1s", "--inject 'kill rank=1 by=1s': by= goes with slow-start only", ""},
      {"slow-start rank=1", "--inject 'slow-start rank=1': how much later is not said",
       "add for example by=500ms"},
      {"slow-start rank=1 at=1s by=1s",
       "--inject 'slow-start rank=1 at=1s by=1s': at= does not go with slow-start",
       "say how much later the process starts: by=500ms"},
      {"launcher", "--inject 'launcher': no signal is named", "write for example launcher kill at=2s"},
      {"launcher slow-start by=1s", "--inject 'launcher slow-start by=1s': there is no action 'slow-start'",
       "there are kill, stop, cont, term, segv, abort, int, hup, usr1, usr2"},
      {"launcher kill rank=1",
       "--inject 'launcher kill rank=1': launcher is one process: it has no rank and no role", ""},
      {"init kill at=step:3", "--inject 'init kill at=step:3': init has no steps", ""},
      {"init kill by=3s", "--inject 'init kill by=3s': by= goes with slow-start only", ""},
      {"kill rank=3", "--inject 'kill rank=3': there is no trainer 3", "the ranks on this host go up to 2"},
      {"kill rank=2 role=server", "--inject 'kill rank=2 role=server': there is no server 2",
       "the ranks on this host go up to 1"},
      {"kill rank=0 role=sever", "--inject 'kill rank=0 role=sever': the job has no role 'sever'",
       "did you mean server?"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.spec);
    const Refusal refusal = refusal_of(row.spec);
    CHECK(refusal.what == row.what);
    CHECK(refusal.hint == row.hint);
  }
}

TEST_CASE("in a job of several waited-for roles the role has to be named") {
  const std::vector<InjectionTarget> job = {{"reader", 0, false}, {"trainer", 0, false}};
  const auto unnamed = parse_injections("kill rank=0");
  CHECK_THROWS_WITH_AS(check_injections(unnamed, job),
                       "--inject 'kill rank=0': which role is meant is not said", Error);
  const auto named = parse_injections("kill rank=0 role=reader");
  CHECK_NOTHROW(check_injections(named, job));
  CHECK(plan_injections(named, job, 0, 1).signals.at(0).index == 0);
}
