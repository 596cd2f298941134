// Hosts that leave, are given up or lead no longer: what ran there has ended when the next world begins.

#include "launcher/cluster/coordinator_core.h"

#include <doctest/doctest.h>

#include "tests/support/coordinator_job.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace fleetrun::launcher::tests;

TEST_CASE("a user stops a host of an elastic job, and only that one goes; of a fixed job, and all go") {
  Job elastic(range(1, 2));
  elastic.come(1);
  elastic.come(2);
  elastic.say(2, Stop{2});
  CHECK(elastic.newest<End>(2)->left);
  CHECK(elastic.newest<End>(2)->end.exit_status == 130);
  CHECK_FALSE(elastic.newest<End>(1));
  elastic.all_ready({1});
  CHECK_FALSE(elastic.newest<WorldNews>(1)->generation == 2);  // not while the other may still run
  elastic.take(elastic.core.on_closed(2, Closing::closed, elastic.now));
  CHECK(elastic.newest<WorldNews>(1)->generation == 2);
  Job all(fixed(2));
  all.come(1);
  all.come(2);
  all.say(2, Stop{2});
  CHECK(all.newest<End>(2)->end.exit_status == 130);
  CHECK(all.newest<End>(1)->end.exit_status == 143);
  CHECK(all.newest<End>(1)->end.why == "stopped by SIGINT on h2");
}

TEST_CASE("a host that leaves hears when the job ends after it, also when it comes again") {
  Job job(range(1, 2));
  job.come(1);
  job.come(2);
  job.say(2, Stop{15});
  CHECK(job.newest<End>(2)->left);
  job.say(1, Stop{15});
  CHECK_FALSE(job.newest<End>(2)->left);
  Hello again = hello(2);
  again.connection = 2;
  job.say(3, again);
  CHECK_FALSE(job.newest<End>(3)->left);
}

TEST_CASE("no world follows while a host that leaves may still run the one before") {
  CoordinatorSettings settings = range(1, 2);
  settings.prepare_timeout = seconds(10);
  Job job(settings);
  job.come(1);
  job.come(2);
  job.say(2, Stop{15});
  job.all_ready({1});
  SUBCASE("its connection breaks, and it never comes again") {
    SUBCASE("it may know") {}
    SUBCASE("it knows") {
      job.say(2, KnowsEnd{});
    }
    job.take(job.core.on_closed(2, Closing::broken, job.now));
    job.pass(milliseconds(2'750), {1});
    CHECK(job.newest<WorldNews>(1)->generation == 1);
    job.pass(milliseconds(250), {1});  // what runs there has ended by then
  }
  SUBCASE("its connection breaks before it knows, and it comes again") {
    job.take(job.core.on_closed(2, Closing::broken, job.now));
    CHECK(job.newest<WorldNews>(1)->generation == 1);
    Hello again = hello(2);
    again.connection = 2;
    again.run = std::string(32, 'f');
    again.world = again.formed = 1;
    job.say(3, again);
    CHECK(job.newest<End>(3)->left);
    CHECK(job.newest<End>(3)->end.exit_status == 143);
    job.say(3, KnowsEnd{});
    CHECK(job.newest<WorldNews>(1)->generation == 1);
    job.take(job.core.on_closed(3, Closing::closed, job.now));
  }
  SUBCASE("it knows, and its processes take their grace") {
    job.say(2, KnowsEnd{});
    job.pass(seconds(9), {1, 2});
    CHECK(job.newest<WorldNews>(1)->generation == 1);
    job.take(job.core.on_closed(2, Closing::closed, job.now));
  }
  CHECK(job.newest<WorldNews>(1)->generation == 2);
  CHECK(job.newest<WorldNews>(1)->nodes == 1);
  CHECK_FALSE(job.newest<Prepare>(1)->generation == 3);
}

TEST_CASE("a coordinator whose host leaves stops all, and says who goes on and where they meet") {
  CoordinatorSettings settings = range(1, 2);
  settings.takeover = true;
  settings.node = node_id(1);
  Job job(settings);
  job.come(1);
  Hello second = hello(2);
  second.successor = {"h2", 9'100};
  job.say(2, second);
  REQUIRE(job.newest<WorldNews>(2)->generation == 1);
  job.say(1, Stop{15});
  CHECK(job.newest<End>(1)->left);
  CHECK(job.newest<Prepare>(2)->proposed.nodes == std::vector<std::string>{node_id(2)});
  job.say(1, KnowsEnd{});
  job.all_ready({2});
  job.pass(seconds(2), {1, 2});
  CHECK_FALSE(job.newest<Redirect>(2));  // what runs beside it has its grace
  job.take(job.core.on_closed(1, Closing::closed, job.now));
  const auto redirect = job.newest<Redirect>(2);
  REQUIRE(redirect);
  CHECK(redirect->coordinator == Endpoint{"h2", 9'100});
  CHECK(redirect->heirs == Configuration{2, 0, node_id(2), {node_id(2)}});
  CHECK(job.core.over());
  CHECK(job.newest<WorldNews>(2)->generation == 1);
}

TEST_CASE("hosts that left in good order do not keep those that stay from going on") {
  CoordinatorSettings settings = range(1, 3);
  settings.takeover = true;
  settings.node = node_id(1);
  Job job(settings);
  for (const ConnectionId each : {1, 2, 3}) job.come(each);
  REQUIRE(job.newest<WorldNews>(1)->nodes == 3);
  for (const ConnectionId each : {2, 3}) {
    job.say(each, Stop{15});
    job.say(each, KnowsEnd{});
  }
  for (const ConnectionId each : {2, 3}) job.take(job.core.on_closed(each, Closing::closed, job.now));
  job.all_ready({1});
  CHECK(job.newest<WorldNews>(1)->nodes == 1);
}

TEST_CASE("no world follows while a host that was given up may still have a lease") {
  CoordinatorSettings settings = range(1, 2);
  settings.prepare_timeout = seconds(5);
  Job job(settings);
  job.come(1);
  job.come(2);
  job.come(3);  // a spare, with which the change begins
  job.say(1, Failing{1, "trainer 0"});
  job.all_ready({1});
  job.pass(seconds(5), {1, 2, 3});
  CHECK(job.noted("h2 was lost: its processes did not end within 5.0 s"));
  job.all_ready({1, 3});
  job.pass(milliseconds(2'500), {1, 3});
  CHECK(job.newest<WorldNews>(1)->generation == 1);
  job.pass(milliseconds(500), {1, 3});
  CHECK(job.newest<WorldNews>(1)->generation > 1);
}

TEST_CASE("a leader's own processes live as long as its lead, or as all the others hear it") {
  CoordinatorSettings settings = range(1, 2);
  settings.durable = true;
  settings.node = node_id(1);
  Job job(settings);
  const auto echo = [&job] {
    job.say(1, Beat{job.now, {}, {}});
    job.pass(milliseconds(500));
    return job.newest<Beat>(1)->echo;
  };
  const Instant stands = kQuiet - kLeaseMargin;
  job.come(1);
  job.come(2);
  job.core.leads_until(job.now + seconds(3));
  job.take(job.core.on_published(true, job.now));
  REQUIRE(job.newest<WorldNews>(1)->generation == 1);
  const Instant lead = job.now + seconds(3);
  SUBCASE("etcd answers nobody, and the other host is there") {
    for (int i = 0; i < 8; ++i) {
      const Instant said = job.now;
      job.say(2, Beat{job.now, job.now, {}});
      CHECK(echo() == said);
    }
  }
  SUBCASE("nobody answers") {
    for (int i = 0; i < 4; ++i) CHECK(echo() <= lead - stands);
    CHECK(echo() == lead - stands);
  }
}

TEST_CASE("a leader waits for what the one before may still run, as long as a member says") {
  CoordinatorSettings settings = range(1, 2);
  settings.durable = true;
  settings.node = node_id(2);
  settings.predecessor_until = seconds(102);
  auto world = std::make_shared<World>();
  world->generation = 1;
  world->run = std::string(32, 'f');
  for (const ConnectionId each : {1, 2}) {
    Member member;
    member.node = node_id(each);
    member.name = "h" + std::to_string(each);
    world->members.push_back(member);
  }
  Job job(settings, Journal{.job_id = "job",
                            .run = world->run,
                            .generation = 1,
                            .world = world,
                            .coordinator = node_id(1),
                            .past = {},
                            .formed = {},
                            .promised = {}});
  Hello again = hello(2);
  again.run = world->run;
  again.world = again.formed = 1;
  job.say(2, again);
  job.pass(milliseconds(1'750), {2});
  CHECK_FALSE(job.newest<Prepare>(2));
  job.pass(milliseconds(250), {2});
  CHECK(job.newest<Prepare>(2));
}
