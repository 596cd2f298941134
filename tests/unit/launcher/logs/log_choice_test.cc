#include "launcher/logs/log_choice.h"

#include <doctest/doctest.h>

#include "launcher/model/job_config.h"
#include "launcher/model/plan.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

/// Two servers and three trainers.
Plan ps_plan() {
  Plan plan;
  plan.roles.resize(2);
  plan.roles[0].name = "server";
  plan.roles[0].serves = true;
  plan.roles[1].name = "trainer";
  for (int i = 0; i < 5; ++i) {
    ProcessSpec process;
    process.role = i < 2 ? 0 : 1;
    process.identity.rank = i < 2 ? i : i - 2;
    process.name = plan.roles[process.role].name + " " + std::to_string(process.identity.rank);
    plan.processes.push_back(process);
  }
  return plan;
}

/// 'x' for a process that is shown, 'f' for one that is shown when it failed.
std::string shown(const Show& show) {
  try {
    std::string marks;
    for (const ViewedProcess& process : viewed_processes(ps_plan(), show))
      marks.push_back(process.showing == Showing::always  ? 'x'
                      : process.showing == Showing::never ? '.'
                                                          : 'f');
    return marks;
  } catch (const Error& error) {
    return error.what() + ("; " + error.hint());
  }
}

}  // namespace

TEST_CASE("--show chooses processes") {
  using Kind = Show::Kind;
  CHECK(shown({}) == "..x..");
  CHECK(shown({Kind::all, {}, {}}) == "xxxxx");
  CHECK(shown({Kind::none, {}, {}}) == ".....");
  CHECK(shown({Kind::failed, {}, {}}) == "fffff");
  CHECK(shown({Kind::chosen, {0, 2}, {}}) == "..x.x");
  CHECK(shown({Kind::chosen, {}, {"server"}}) == "xx...");
  CHECK(shown({Kind::chosen, {1}, {"server"}}) == "xx.x.");
  CHECK(viewed_processes(ps_plan(), {Kind::all, {}, {}})[3].name == "trainer 1");
  CHECK(is_raw({}));
  CHECK_FALSE(is_raw({Kind::chosen, {0}, {}}));
}

TEST_CASE("whom the job does not have cannot be shown") {
  CHECK(shown({Show::Kind::chosen, {3}, {}}) ==
        "--show names trainer 3, and there are 3 of them; ranks begin at 0");
  CHECK(shown({Show::Kind::chosen, {}, {"driver"}}) == "--show names driver, and the job has no such role; ");
}

TEST_CASE("names are coloured on terminals, unless somebody is against it") {
  Environ with_no_colour, dumb;
  with_no_colour.set("NO_COLOR", "1");
  dumb.set("TERM", "dumb");
  CHECK(use_colour(Color::automatic, true, {}));
  CHECK_FALSE(use_colour(Color::automatic, false, {}));
  CHECK_FALSE(use_colour(Color::automatic, true, with_no_colour));
  CHECK_FALSE(use_colour(Color::automatic, true, dumb));
  CHECK(use_colour(Color::always, false, with_no_colour));
  CHECK_FALSE(use_colour(Color::never, true, {}));
}

TEST_CASE("in a job of several hosts, who is not here may be on another one") {
  Plan plan = ps_plan();
  const EndpointList trainers = {{"10.0.0.1", 1}, {"10.0.0.1", 2}, {"10.0.0.1", 3}, {"10.0.0.2", 1}};
  plan.processes.erase(plan.processes.begin(), plan.processes.begin() + 2);  // the servers are elsewhere
  for (ProcessSpec& process : plan.processes) {
    process.identity.mode = Mode::ps;
    process.identity.trainers = trainers;
    process.identity.world = WorldTag{.host_rank = 0, .hosts = 2, .generation = 1, .run = "", .hash = ""};
  }
  using Kind = Show::Kind;
  CHECK(viewed_processes(plan, {Kind::chosen, {1, 3}, {"server"}})[1].showing == Showing::always);
  CHECK_THROWS_AS(viewed_processes(plan, {Kind::chosen, {4}, {}}), Error);
}
