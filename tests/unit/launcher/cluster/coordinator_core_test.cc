#include "launcher/cluster/coordinator_core.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/coordinator_job.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace fleetrun::launcher::tests;

TEST_CASE("a fixed job begins when the last host is here, from the hellos alone") {
  Job job(fixed(2));
  job.come(1);
  CHECK_FALSE(job.newest<WorldNews>());
  job.come(2);
  const auto first = job.newest<WorldNews>(1), second = job.newest<WorldNews>(2);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->rank == 0);
  CHECK(second->rank == 1);
  CHECK(second->nodes == 2);
  CHECK(first->hash == second->hash);
  CHECK(first->generation == 1);
  CHECK(job.newest<WorldList>(2)->world->hash() == second->hash);
  CHECK(job.noted("epoch 1: 2 hosts, 2 trainers"));
}

TEST_CASE("a range begins with all that can be, or when nobody else came for a while") {
  Job job(range(1, 3));
  job.come(1);
  job.come(2);
  job.pass(milliseconds(1'500), {1, 2});
  CHECK_FALSE(job.newest<WorldNews>());
  job.pass(milliseconds(1'000), {1, 2});
  CHECK(job.newest<WorldNews>(2)->nodes == 2);
  Job full(range(1, 2));
  full.come(1);
  full.come(2);
  CHECK(full.newest<WorldNews>(2)->nodes == 2);
}

TEST_CASE("a first world waits for hosts of another run of the job, until they are started again") {
  Job job(range(1, 2));
  Hello other = hello(7);
  other.run = "earlier";
  other.name = "h2";
  job.say(7, other);
  job.come(1);
  job.pass(milliseconds(5'000), {1});
  CHECK_FALSE(job.newest<WorldNews>());
  job.come(2);
  CHECK(job.newest<WorldNews>(2)->nodes == 2);
}

TEST_CASE("who does not fit is refused in words that name both sides") {
  Job job(fixed(3));
  job.come(1, 0);
  Hello other = hello(2);
  other.version = "2.0";
  job.say(2, other);
  CHECK(job.newest<Refused>(2)->text ==
        "this host runs fleetrun 2.0, the host that coordinates the job runs fleetrun 1.0");
  CHECK(job.newest<Refused>(2)->hint == "install the same version on all hosts");
  CHECK(job.closed == std::vector<ConnectionId>{2});
  other = hello(3);
  other.job_id = "another";
  job.say(3, other);
  CHECK(job.newest<Refused>(3)->text ==
        "this host was started for job \"another\", and here job \"job\" meets");
  job.come(4, 0);
  CHECK(job.newest<Refused>(4)->text == "node rank 0 is taken twice: by h1 and by h4");
  job.come(5, 3);
  CHECK(job.newest<Refused>(5)->text == "node rank 3 of h5 is not below the number of hosts, 3");
  Hello copy = hello(1);
  copy.name = "h6";
  job.say(6, copy);
  other = hello(7);
  other.nodes = {2, 4, 1};
  job.say(7, other);
  CHECK(job.newest<Refused>(7)->text ==
        "h7 was started with --nnodes=2:4, and the host that coordinates the job with --nnodes=3");
  CHECK(job.newest<Refused>(7)->hint == "give all hosts the same --nnodes");
  CHECK(job.newest<Refused>(6)->text == "two hosts have the same identity: h1 and h6");
  CHECK(job.newest<Refused>(6)->exit_status == 125);
  CHECK(job.noted("h4 was refused: node rank 0 is taken twice: by h1 and by h4"));
}

TEST_CASE("hosts that run other bytes are told of once each, and train all the same") {
  Job job(fixed(3));
  for (const std::uint32_t number : {1u, 2u, 3u}) {
    Hello its = hello(number);
    its.program = number == 2 ? 8 : 7;
    job.say(number, its);
  }
  const auto differ = [](const std::string& note) { return note.find("differ") != std::string::npos; };
  CHECK(
      job.noted("h2 runs another program than h1: the contents of their scripts differ (copy the same one "
                "to both)"));
  CHECK(std::ranges::count_if(job.notes, differ) == 1);
  CHECK(job.newest<WorldNews>(2)->nodes == 3);
  Job unknown(fixed(2));  // of a module nothing is known
  unknown.come(1);
  Hello its = hello(2);
  its.program = 7;
  unknown.say(2, its);
  CHECK(std::ranges::none_of(unknown.notes, differ));
}

TEST_CASE("those who wait are told for whom, and in the end that it was in vain") {
  CoordinatorSettings settings = fixed(3);
  settings.expected = {"h1", "h2", "h7"};
  settings.join_timeout = seconds(30);
  Job job(settings);
  job.come(1);
  job.come(2);
  job.pass(seconds(3), {1, 2});
  CHECK(job.newest<Waiting>(1)->text == "waiting for 1 of 3 hosts: no word from h7 for 3.0 s");
  CHECK(job.core.missing() == std::vector<std::string>{"h7"});
  job.pass(seconds(28), {1, 2});
  const auto end = job.newest<End>(2);
  REQUIRE(end);
  CHECK(end->end.exit_status == 125);
  CHECK(end->end.why == "not all hosts came in 30 s: waiting for 1 of 3 hosts: no word from h7 for 30 s");
}

TEST_CASE("an extra host is a spare, and takes a lost one's place") {
  CoordinatorSettings settings = fixed(2);
  settings.restarts.budgets.fill(-1);
  Job job(settings);
  job.come(1);
  job.come(2);
  job.come(3);
  CHECK(job.newest<Parked>(3)->text == "the job has all its 2 hosts");
  job.take(job.core.on_closed(1, Closing::closed, job.now));
  CHECK(job.noted("h1 was lost: its launcher is gone"));
  job.all_ready({2, 3});
  const auto news = job.newest<WorldNews>(3);
  REQUIRE(news);
  CHECK(news->generation == 2);
  CHECK(news->rank == 0);
  CHECK(job.newest<WorldNews>(2)->rank == 1);  // it keeps its rank
}

TEST_CASE("a job that would end with the loss of a host has no use for one more, and refuses it") {
  Job job(fixed(2));
  job.come(1);
  job.come(2);
  job.come(3);
  const auto refused = job.newest<Refused>(3);
  REQUIRE(refused);
  CHECK(refused->text == "the job that meets here has all its 2 hosts, and h3 came after them");
  CHECK(refused->hint == "give each job a --master port of its own, or wait until that one has ended");
}

TEST_CASE("a fixed job that does not restart ends when a host is lost, and says which") {
  Job job(fixed(2));
  job.come(1);
  job.come(2);
  job.pass(milliseconds(3'000), {1});
  const auto end = job.newest<End>(1);
  REQUIRE(end);
  CHECK(end->end.exit_status == 75);
  CHECK(end->end.why == "h2 was lost: no word from it for 3.0 s");
  CHECK(end->end.node == "h2");
}

TEST_CASE("a host that may be silent for longer is waited for, and people are told") {
  CoordinatorSettings settings = fixed(2);
  settings.lost_after = seconds(60);
  Job job(settings);
  job.come(1);
  job.come(2);
  job.pass(seconds(10), {1});
  CHECK(job.newest<Waiting>(1)->text ==
        "no word from h2 for 3.0 s: the job waits up to 60 s for it (--lost_after)");
  CHECK_FALSE(job.newest<Prepare>());
  SUBCASE("it is back") {
    job.say(2, Beat{});
    CHECK(job.newest<Waiting>(1)->text == "h2 is back after 10 s");
    job.pass(seconds(2), {1, 2});
    CHECK_FALSE(job.newest<Prepare>());
  }
  SUBCASE("it stays away") {
    job.pass(seconds(51), {1});
    CHECK(job.newest<End>(1)->end.why == "h2 was lost: no word from it for 60 s");
  }
  SUBCASE("it was started again: what ran there is gone, and nobody can take its place") {
    Hello again = hello(3);
    again.name = "h2";
    job.say(3, again);
    CHECK(job.newest<End>(1)->end.why == "h2 was lost: it was started again");
  }
  SUBCASE("something fails meanwhile: there is nothing to save") {
    job.say(1, Failed{1, crash("trainer 0"), job.now});
    job.pass(seconds(1), {1});
    CHECK(job.newest<End>(1)->end.exit_status == 75);
  }
}

TEST_CASE("an elastic job goes on with the survivors, and takes in who comes later") {
  Job job(range(1, 3));
  for (const ConnectionId each : {1, 2, 3}) job.come(each);
  job.pass(milliseconds(3'000), {1, 3});
  job.all_ready({1, 3});
  CHECK(job.newest<WorldNews>(3)->nodes == 2);
  CHECK(job.newest<WorldNews>(3)->rank == 1);
  job.come(4);
  CHECK(job.newest<Parked>(4)->text == "the job takes it in with its next epoch");
  job.pass(milliseconds(2'500), {1, 3, 4});
  job.all_ready({1, 3, 4});
  CHECK(job.newest<WorldNews>(4)->nodes == 3);
  CHECK(job.newest<WorldNews>(4)->rank == 2);
}

TEST_CASE("too few are left: all stop, and wait for others as long as the elastic timeout") {
  CoordinatorSettings settings = range(2, 2);
  settings.elastic_timeout = seconds(20);
  Job job(settings);
  job.come(1);
  job.come(2);
  job.take(job.core.on_closed(2, Closing::closed, job.now));
  CHECK(job.newest<Prepare>(1)->generation == 2);
  job.all_ready({1});
  job.pass(seconds(19), {1});
  CHECK_FALSE(job.newest<End>(1));
  SUBCASE("one comes") {
    job.come(3);
    job.all_ready({1, 3});
    CHECK(job.newest<WorldNews>(3)->nodes == 2);
  }
  SUBCASE("nobody comes") {
    job.pass(seconds(2), {1});
    CHECK(job.newest<End>(1)->end.exit_status == 75);
    CHECK(job.newest<End>(1)->end.why.find("waiting for 1 of 2 hosts: no word from h2 for 20 s") !=
          std::string::npos);
  }
}

TEST_CASE("the first death is the cause, whoever tells it first, and everybody stops at the first word") {
  CoordinatorSettings settings = fixed(2);
  Job job(settings);
  job.come(1);
  job.come(2);
  // h2's clock is 50 s behind: two beats tell.
  job.say(1, Beat{job.now, job.now, Instant{}});
  job.say(2, Beat{job.now - seconds(50), job.now, Instant{}});
  job.say(1, Failing{1, "trainer 0"});
  CHECK(job.newest<Prepare>(2)->generation == 2);
  CHECK(job.newest<Prepare>(2)->why == "trainer 0 on h1 failed");
  job.say(1, Failed{1, crash("trainer 0"), job.now});
  job.say(2, Failing{1, "trainer 1"});
  job.say(2, Failed{1, crash("trainer 1"), job.now - seconds(50) - milliseconds(5)});
  CHECK_FALSE(job.newest<End>(1));
  job.all_ready({1, 2});
  const auto end = job.newest<End>(1);
  REQUIRE(end);
  CHECK(end->end.exit_status == 3);
  CHECK(end->end.why == "trainer 1 on h2 exited with code 3");
  CHECK(end->end.failure->process == "trainer 1");
}

TEST_CASE(
    "a failed job starts again as its budget allows, with new ports, a new epoch and the next attempt") {
  CoordinatorSettings settings = fixed(2);
  settings.restarts.budgets.fill(1);
  Job job(settings);
  job.come(1);
  job.come(2);
  for (int attempt = 1; attempt <= 2; ++attempt) {
    const std::uint64_t generation = job.core.world()->generation;
    job.say(2, Failing{generation, "trainer 1"});
    job.say(2, Failed{generation, crash("trainer 1"), job.now});
    job.all_ready({1, 2});
    if (attempt == 2) break;
    CHECK(job.newest<WorldNews>(1)->attempt == 1);
    CHECK(job.newest<WorldNews>(1)->generation == 2);
    CHECK(job.noted("starting again: crash, restart 1 of 1"));
  }
  CHECK(job.newest<End>(1)->end.why ==
        "trainer 1 on h2 exited with code 3; all 1 restarts after crash are used up");
}

TEST_CASE("a port that somebody else took is no failure, once") {
  Job job(fixed(1));
  job.come(1);
  NodeFailure failure = crash("trainer 0");
  failure.port_clash = true;
  job.say(1, Failed{1, failure, job.now});
  job.all_ready({1});
  CHECK(job.newest<WorldNews>(1)->generation == 2);
  job.say(1, Failed{2, failure, job.now});
  job.all_ready({1});
  CHECK(job.newest<End>(1)->end.exit_status == 3);
}

TEST_CASE("reports about an epoch that is over are ignored") {
  CoordinatorSettings settings = range(1, 2);
  Job job(settings);
  job.come(1);
  job.come(2);
  job.take(job.core.on_closed(2, Closing::closed, job.now));
  job.all_ready({1});
  REQUIRE(job.newest<WorldNews>(1)->generation == 2);
  job.say(1, Failing{1, "trainer 0"});
  job.say(1, Done{1});
  CHECK_FALSE(job.newest<End>());
  CHECK(job.newest<Prepare>(1)->generation == 2);
  job.say(1, Done{2});
  CHECK(job.newest<End>(1)->end.exit_status == 0);
}

TEST_CASE("a connection that broke goes on within the lease, with what was missed") {
  Job job(range(1, 2));
  job.come(1);
  job.come(2);
  job.take(job.core.on_closed(2, Closing::broken, job.now));
  job.say(1, Failing{1, "trainer 0"});
  CHECK_FALSE(job.newest<Prepare>(2));
  Hello again = hello(2);
  again.connection = 2;
  again.run = std::string(32, 'f');
  again.promised = again.formed = again.world = 1;
  again.rank = 1;
  job.say(12, again);
  CHECK(job.newest<Welcome>(12)->resumed);
  CHECK(job.newest<Prepare>(12)->generation == 2);
}

TEST_CASE("a ready that is said twice over a broken connection does not stop the world that followed it") {
  CoordinatorSettings settings = fixed(1);
  settings.restarts.budgets.fill(-1);
  Job job(settings);
  job.come(1);
  job.say(1, Failed{1, crash("trainer 0"), job.now});
  job.all_ready({1});
  REQUIRE(job.newest<WorldNews>(1)->generation == 2);
  job.say(1, Ready{2, {"h1", {1}, {}, 0}});
  job.take(job.core.on_closed(1, Closing::broken, job.now));
  Hello again = hello(1);
  again.connection = 2;
  again.run = std::string(32, 'f');
  again.promised = again.formed = again.world = 2;
  again.rank = 0;
  again.fenced = true;  // what ran there has been stopped: the others have to be told
  job.say(11, again);
  CHECK(job.newest<Prepare>(11)->generation == 3);
}

TEST_CASE("in place: a trainer's host goes and another comes, and the others go on") {
  CoordinatorSettings settings = range(1, 3);
  settings.in_place = true;
  Job job(settings);
  Hello server = hello(1);
  server.offer.servers = {7};
  job.say(1, server);
  job.come(2);
  job.come(3);
  job.take(job.core.on_closed(2, Closing::closed, job.now));
  CHECK(job.newest<Prepare>(1)->in_place);
  job.all_ready({1, 3});
  CHECK(job.newest<WorldNews>(3)->update);
  CHECK(job.newest<WorldNews>(3)->generation == 2);
  CHECK(job.newest<WorldNews>(3)->attempt == 0);
  CHECK(job.newest<WorldNews>(3)->first_trainer == 2);  // as before
  job.come(4);
  job.pass(milliseconds(2'500), {1, 3, 4});
  CHECK(job.newest<Prepare>(3)->in_place);
  CHECK_FALSE(job.newest<Prepare>(4)->in_place);
  job.all_ready({1, 3, 4});
  CHECK(job.newest<WorldNews>(4)->first_trainer == 1);  // the hole
  CHECK_FALSE(job.newest<WorldNews>(4)->update);
  job.take(job.core.on_closed(1, Closing::closed, job.now));  // the server
  CHECK_FALSE(job.newest<Prepare>(3)->in_place);
}

TEST_CASE("the coordinator stays until everybody knows the end, or until it was long enough") {
  Job job(fixed(2));
  job.come(1);
  job.come(2);
  job.say(1, Done{1});
  job.say(2, Done{1});
  CHECK(job.newest<End>(1)->end == JobEnd{});
  job.say(1, KnowsEnd{});
  CHECK_FALSE(job.core.over());
  SUBCASE("all know") {
    job.say(2, KnowsEnd{});
  }
  SUBCASE("one does not say") {
    job.pass(seconds(6), {1, 2});
  }
  CHECK(job.core.over());
  REQUIRE(job.last);
  CHECK(std::get<coordinating::Over>(*job.last).end.exit_status == 0);
}

TEST_CASE("a host whose processes do not end is lost, though it answers") {
  CoordinatorSettings settings = range(1, 2);
  settings.prepare_timeout = seconds(10);
  Job job(settings);
  job.come(1);
  job.come(2);
  job.say(1, Failing{1, "trainer 0"});
  job.all_ready({1});
  job.pass(seconds(10), {1, 2});
  CHECK(job.noted("h2 was lost: its processes did not end within 10 s"));
}

TEST_CASE("where a leader's word is stored, no world is told before it is") {
  CoordinatorSettings settings = fixed(1);
  settings.durable = true;
  Job job(settings);
  job.come(1);
  REQUIRE(job.last);
  const auto publish = std::get<coordinating::Publish>(*job.last);
  CHECK(publish.journal.world->generation == 1);
  CHECK_FALSE(job.newest<WorldNews>());
  SUBCASE("stored") {
    job.take(job.core.on_published(true, job.now));
    CHECK(job.newest<WorldNews>(1)->generation == 1);
    // Another leader goes on from there.
    Job next(settings, publish.journal);
    Hello again = hello(1);
    again.run = std::string(32, 'f');
    again.promised = again.formed = again.world = 1;
    again.rank = 0;
    again.fenced = true;
    next.say(1, again);
    next.all_ready({1});
    CHECK(std::get<coordinating::Publish>(*next.last).journal.world->generation == 2);
    CHECK(std::get<coordinating::Publish>(*next.last).journal.world->attempt == 1);
  }
  SUBCASE("not stored: another one leads") {
    job.take(job.core.on_published(false, job.now));
    CHECK(std::holds_alternative<coordinating::StepDown>(*job.last));
    CHECK(job.core.over());
    CHECK_FALSE(job.newest<WorldNews>());
  }
}

TEST_CASE("of two runs of one job that have both begun, the one that began first goes on") {
  const auto begun = [] {
    auto job = std::make_unique<Job>(fixed(2));
    job->come(1);
    job->come(2);
    CHECK(job->newest<WorldNews>(1)->nodes == 2);
    return job;
  };
  auto younger = begun();
  younger->say(9, Acting{"job", std::string(32, 'a'), 4, {"h3", 77}});
  REQUIRE(younger->newest<End>(1));
  CHECK(younger->newest<End>(1)->end.exit_status == 125);
  CHECK(younger->newest<End>(2)->end.why.find("a run of job \"job\" that began earlier goes on; h3:77") == 0);
  auto older = begun();
  older->say(9, Acting{"job", std::string(32, 'g'), 1, {"h3", 77}});
  CHECK_FALSE(older->newest<End>(1));
  REQUIRE(older->last);
  const auto& told = std::get<coordinating::TellOnce>(*older->last);
  CHECK(told.to == Endpoint{"h3", 77});
  CHECK(std::get<Acting>(told.message.message()).run == std::string(32, 'f'));
}

TEST_CASE("who takes over tells the first address only while enough of the newest epoch are here") {
  CoordinatorSettings settings = range(1, 3);
  settings.takeover = true;
  settings.node = node_id(2);
  settings.heralded = Endpoint{"h1", 9'000};
  Journal journal;
  journal.run = std::string(32, 'f');
  journal.formed = {1, 0, node_id(1), {node_id(1), node_id(2), node_id(3)}};
  Job job(settings, journal);
  const auto again = [&job](ConnectionId number) {
    Hello its = hello(number);
    its.run = std::string(32, 'f');
    its.promised = its.formed = its.world = 1;
    job.say(number, its);
  };
  const auto told_within = [&job](milliseconds time, std::vector<ConnectionId> alive) {
    bool told = false;
    for (milliseconds passed{}; passed < time; passed += milliseconds(250)) {
      job.last.reset();
      job.pass(milliseconds(250), alive);
      told = told || (job.last && std::holds_alternative<coordinating::TellOnce>(*job.last));
    }
    return told;
  };
  again(2);
  CHECK_FALSE(told_within(seconds(2), {2}));
  again(3);
  CHECK(told_within(seconds(2), {2, 3}));
}

TEST_CASE("a launcher that came to the first address too late joins the one that acts") {
  Job job(fixed(2));
  job.come(1);
  job.say(9, Acting{"job", std::string(32, 'a'), 4, {"h3", 77}});
  CHECK(job.newest<Redirect>(1)->coordinator == Endpoint{"h3", 77});
  CHECK(job.core.over());
  Job other(fixed(2));
  other.say(9, Acting{"another job", std::string(32, 'a'), 4, {"h3", 77}});
  CHECK_FALSE(other.core.over());
}
