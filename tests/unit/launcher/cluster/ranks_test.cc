#include "launcher/cluster/ranks.h"

#include <doctest/doctest.h>

#include "launcher/cluster/quarantine.h"
#include "launcher/cluster/quorum.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

Candidate candidate(const std::string& node, int previous = -1, int requested = -1,
                    std::size_t trainers = 1) {
  Candidate its;
  its.member.node = its.member.name = node;
  its.member.offer.trainers.assign(trainers, 1);
  its.previous_rank = previous;
  its.requested_rank = requested;
  return its;
}

std::string order(const std::vector<Member>& members) {
  std::string text;
  for (const Member& member : members)
    text += (text.empty() ? "" : " ") + member.node + ":" + std::to_string(member.first_trainer);
  return text;
}

}  // namespace

TEST_CASE("a world is as large as its rules allow, and a multiple") {
  CHECK(world_size({4, 4, 1}, 3) == 0);
  CHECK(world_size({4, 4, 1}, 4) == 4);
  CHECK(world_size({4, 4, 1}, 9) == 4);
  CHECK(world_size({2, 16, 2}, 7) == 6);
  CHECK(world_size({2, 16, 4}, 3) == 0);
  CHECK(world_size({1, 3, 1}, 0) == 0);
}

TEST_CASE(
    "the first world: requested ranks are kept free, the others come in their order, and slots are summed "
    "up") {
  CHECK(order(arrange({candidate("a", -1, -1, 2), candidate("b", -1, -1, 3), candidate("c")}, 3)) ==
        "a:0 b:2 c:5");
  CHECK(order(arrange({candidate("a"), candidate("b", -1, 0), candidate("c", -1, 2)}, 3)) == "b:0 a:1 c:2");
  CHECK(order(arrange({candidate("a"), candidate("b"), candidate("c", -1, 1)}, 2)) == "a:0 c:1");
}

TEST_CASE("survivors keep their ranks, holes are filled by newcomers, then from the end") {
  CHECK(order(arrange({candidate("a", 0), candidate("c", 2), candidate("n")}, 3)) == "a:0 n:1 c:2");
  CHECK(order(arrange({candidate("b", 1), candidate("c", 2)}, 2)) == "c:0 b:1");
  CHECK(order(arrange({candidate("a", 0), candidate("d", 3), candidate("n")}, 3)) == "a:0 n:1 d:2");
  CHECK(order(arrange({candidate("n", -1, 0), candidate("a", 0)}, 1)) == "a:0");
}

TEST_CASE("in place everybody keeps its ranks, and a newcomer gets a hole that is wide enough") {
  World before;
  before.members =
      arrange({candidate("a", -1, -1, 2), candidate("b", -1, -1, 2), candidate("c", -1, -1, 1)}, 3);
  CHECK(order(arrange_in_place(before, {candidate("a"), candidate("c")}, 3)) == "a:0 c:4");
  CHECK(order(arrange_in_place(before, {candidate("a"), candidate("c"), candidate("n", -1, -1, 2)}, 3)) ==
        "a:0 c:4 n:2");
  CHECK(order(arrange_in_place(before, {candidate("a"), candidate("c"), candidate("n", -1, -1, 3)}, 3)) ==
        "a:0 c:4 n:5");
  CHECK(order(arrange_in_place(before, {candidate("a"), candidate("b"), candidate("c"), candidate("n")},
                               3)) == "a:0 b:2 c:4");
  Candidate serves = candidate("n", -1, -1, 2);
  serves.member.offer.servers = {9};
  const auto after = arrange_in_place(before, {candidate("a"), candidate("c"), serves}, 3);
  CHECK(after.back().offer.servers.empty());  // clients know the servers that were there
}

TEST_CASE("a host that is blamed too often rests, each time twice as long") {
  Quarantine quarantine({3, seconds(600), seconds(10), seconds(25)});
  CHECK(quarantine.until("h") < Instant{});
  quarantine.blame("h", seconds(1));
  quarantine.blame("h", seconds(2));
  CHECK(quarantine.until("h") < Instant{});
  quarantine.blame("h", seconds(3));
  CHECK(quarantine.until("h") == seconds(13));
  CHECK(quarantine.until("other") < Instant{});
  for (int i = 0; i < 3; ++i) quarantine.blame("h", seconds(20));
  CHECK(quarantine.until("h") == seconds(40));
  for (int i = 0; i < 3; ++i) quarantine.blame("h", seconds(50));
  CHECK(quarantine.until("h") == seconds(75));  // no longer than that
  Quarantine forgetting({2, seconds(10), seconds(10), seconds(10)});
  forgetting.blame("h", seconds(1));
  forgetting.blame("h", seconds(12));
  CHECK(forgetting.until("h") < Instant{});
}

TEST_CASE("a quorum is a majority of the newest world and of every proposal that may have become one") {
  KnownConfigurations known;
  const auto among = [](const std::string& here) {
    return [here](const std::string& node) { return !node.empty() && here.find(node) != std::string::npos; };
  };
  CHECK(known.quorum(among("")));
  known.formed({1, 0, "a", {"a", "b", "c", "d"}});
  CHECK(known.quorum(among("bcd")));
  CHECK(known.quorum(among("ad")));  // half, with its coordinator
  CHECK_FALSE(known.quorum(among("cd")));
  known.promised({2, 1, "a", {"a", "b"}});
  CHECK_FALSE(known.quorum(among("cd")));
  CHECK_FALSE(
      known.quorum(among("bcd")));  // a and b may run generation 2, and b is half without its coordinator
  CHECK(known.quorum(among("abc")));
  known.promised({3, 1, "a", {"a", "c"}});  // the same coordinator gave its older proposal up
  CHECK(known.proposals().size() == 1);
  known.promised({4, 1, "b", {}});  // one that stops only
  CHECK(known.proposals().size() == 1);
  CHECK(known.concerns("d"));
  CHECK_FALSE(known.concerns("e"));
  known.formed({3, 1, "a", {"a", "c"}});
  CHECK(known.proposals().empty());
  known.formed({2, 1, "a", {"b"}});  // an older one says nothing
  CHECK(known.newest().generation == 3);
}

TEST_CASE(
    "the servers of a lost host are taken over by their standbys' processes, as far as those have ports") {
  World world;
  for (int host = 0; host < 3; ++host) {
    Member& member = world.members.emplace_back();
    member.node = member.name = std::string(1, static_cast<char>('a' + host));
    member.offer = {"10.0.0." + std::to_string(host + 1), {1}, {10, 11}, 5, {20, 21}};
    member.first_server = 2 * host;
    member.first_trainer = host;
  }
  const auto without = [&](const std::string& nodes) {
    std::vector<Candidate> here;
    for (const Member& member : world.members)
      if (nodes.find(member.node) == std::string::npos) here.push_back({member, -1, -1});
    return here;
  };
  CHECK(take_over_servers(world, without(""))->empty());
  const auto taken = take_over_servers(world, without("b"));
  REQUIRE(taken);
  CHECK(*taken == std::vector<TakenOver>{{2, "c", {"10.0.0.3", 20}, {"10.0.0.2", 10}},
                                         {3, "c", {"10.0.0.3", 21}, {"10.0.0.2", 11}}});
  CHECK_FALSE(take_over_servers(world, without("bc")));

  World next = world;
  next.members.erase(next.members.begin() + 1);
  next.taken_over = *taken;
  CHECK(next.servers() == 6);
  CHECK(to_string(next.server_endpoints()[3]) == "10.0.0.3:21");
  CHECK(next.hash() != world.hash());
  CHECK(*take_over_servers(next, without("b")) == *taken);
  CHECK_FALSE(take_over_servers(next, without("ab")));
  CHECK_FALSE(take_over_servers(next, without("bc")));
  CHECK(next.first_server_endpoints() == world.server_endpoints());

  // With two ports for each server a second host may be lost: either of them, with what it had taken over.
  next.members[0].offer.standbys = next.members[1].offer.standbys = {20, 21, 22, 23};
  for (Member& member : world.members) member.offer.standbys = {20, 21, 22, 23};
  CHECK(*take_over_servers(next, without("ab")) ==
        std::vector<TakenOver>{(*taken)[0],
                               (*taken)[1],
                               {0, "c", {"10.0.0.3", 22}, {"10.0.0.1", 10}},
                               {1, "c", {"10.0.0.3", 23}, {"10.0.0.1", 11}}});
  CHECK(*take_over_servers(next, without("bc")) ==
        std::vector<TakenOver>{{2, "a", {"10.0.0.1", 20}, {"10.0.0.2", 10}},
                               {3, "a", {"10.0.0.1", 21}, {"10.0.0.2", 11}},
                               {4, "a", {"10.0.0.1", 22}, {"10.0.0.3", 10}},
                               {5, "a", {"10.0.0.1", 23}, {"10.0.0.3", 11}}});
  CHECK_FALSE(take_over_servers(world, without("bc")));  // at once: b's standbys go with c
  const auto newcomer = arrange_in_place(next, without("q"), 3);
  REQUIRE(newcomer.size() == 3);
  CHECK(newcomer[2].offer.servers.empty());
  CHECK(newcomer[2].first_trainer == 1);

  world.members[1].offer.standbys.clear();
  CHECK_FALSE(take_over_servers(world, without("b")));
  CHECK_FALSE(take_over_servers(world, without("a")));  // whose standby is there
  CHECK(take_over_servers(world, without("c")));
}
