#include "launcher/cluster/cluster_event.h"

#include <doctest/doctest.h>

#include "launcher/cluster/message_text.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using std::chrono::milliseconds;

TEST_CASE("events of a cluster are sentences") {
  auto world = std::make_shared<World>();
  world->generation = 3;
  world->members.resize(2);
  world->members[0].offer = {"h1", {1, 2}, {3}, 0};
  world->members[1].offer = {"h2", {1}, {}, 0};
  NodeFailure failure;
  failure.process = "trainer 3";
  failure.text = "exited with 1";
  CHECK(to_string(NodeJoined{"h1", "a"}) == "h1 is here");
  CHECK(to_string(NodeLost{"h7", "a", "no word from it for 3.0 s", milliseconds(3'000)}) ==
        "h7 was lost: no word from it for 3.0 s");
  CHECK(to_string(NodeRefused{"h1", "another job"}) == "h1 was refused: another job");
  CHECK(to_string(NodeParked{"h1", "the job is full"}) == "h1 waits as a spare: the job is full");
  CHECK(to_string(WaitingForNodes{"waiting"}) == "waiting");
  CHECK(to_string(ChangeBegun{4, "h7 was lost"}) == "preparing epoch 4: h7 was lost");
  CHECK(to_string(WorldFormed{world}) == "epoch 3: 2 hosts, 3 trainers, 1 server");
  CHECK(to_string(NodeFailed{"h2", failure}) == "trainer 3 on h2 exited with 1");
  CHECK(to_string(RestartDecided{"crash, restart 1 of 3", {}}) == "starting again: crash, restart 1 of 3");
  CHECK(to_string(RestartDecided{"crash, restart 2 of 3", milliseconds(700)}) ==
        "starting again: crash, restart 2 of 3, in 0.7 s");
  CHECK(to_string(JobEnded{}) == "the job is done");
  CHECK(to_string(JobEnded{{1, "why", "", {}}}) == "the job is over: why");
}

TEST_CASE("some of them are told to --on_event") {
  NodeFailure failure;
  failure.process = "trainer 3";
  failure.text = "exited with 1";
  failure.exit_status = 1;
  auto world = std::make_shared<World>();
  world->generation = 1;
  CHECK(notice_of(WorldFormed{world})->kind == JobNotice::Kind::start);
  world->generation = 2;
  CHECK_FALSE(notice_of(WorldFormed{world}));
  CHECK_FALSE(notice_of(NodeJoined{"h1", "a"}));
  const auto failed = notice_of(NodeFailed{"h2", failure});
  REQUIRE(failed);
  CHECK(failed->process + " on " + failed->host + " " + failed->why == "trainer 3 on h2 exited with 1");
  CHECK(notice_of(NodeLost{"h7", "a", "it was stopped", {}})->host == "h7");
  CHECK(notice_of(RestartDecided{"crash", milliseconds(700)})->backoff_ms == 700);
  CHECK(notice_of(JobEnded{{1, "why", "h2", {}}})->exit_status == 1);
}

TEST_CASE("times and names are as short as people want them") {
  CHECK(shown(milliseconds(340)) == "0.3 s");
  CHECK(shown(milliseconds(41'200)) == "41 s");
  CHECK(shown(milliseconds(720'000)) == "12 min");
  CHECK(counted(1, "host") == "1 host");
  CHECK(listed({}).empty());
  CHECK(listed({"h1"}) == "h1");
  CHECK(listed({"h1", "h2", "h3"}) == "h1, h2 and h3");
  CHECK(listed({"h1", "h2", "h3", "h4"}, 2) == "h1, h2 and 2 others");
}
