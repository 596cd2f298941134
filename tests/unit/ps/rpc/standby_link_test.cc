#include "ps/rpc/standby_link.h"

#include <doctest/doctest.h>

#include <set>

#include "runtime/base/environ.h"
#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::Environ;
using fleetrun::standby_beside;
using fleetrun::standby_now;
using fleetrun::standby_of;
using fleetrun::tests::text_of;

TEST_CASE("a standby is on another host where there is one, and each server holds one") {
  using Endpoints = std::vector<std::string>;
  const Endpoints one_host{"a:1", "a:2", "a:3"};
  CHECK(standby_of(0, one_host) == 1);
  CHECK(standby_of(2, one_host) == 0);
  const Endpoints two_hosts{"[::1]:1", "[::1]:2", "b:1", "b:2"};
  std::set<std::uint32_t> holders;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const std::uint32_t holder = standby_of(rank, two_hosts);
    CHECK((holder < 2) != (rank < 2));
    holders.insert(holder);
  }
  CHECK(holders.size() == 4);
  CHECK(standby_of(2, {"a:1", "b:1", "b:2"}) == 0);
  CHECK(text_of([] { standby_of(0, {"a:1"}); }) == "a server's standby is another server, and there is one");
}

TEST_CASE("the standby of a server that moves is in another process, whatever their number") {
  for (std::uint32_t servers = 2; servers <= 9; ++servers)
    for (std::uint32_t processes = 2; processes <= servers; ++processes)
      for (std::uint32_t rank = 0; rank < servers; ++rank) {
        CHECK(standby_beside(rank, servers) < servers);
        CHECK(standby_beside(rank, servers) % processes != rank % processes);
      }
  CHECK(text_of([] { standby_beside(0, 1); }) == "a server's standby is another server, and there is one");
}

const std::vector<std::string> kTwo{"127.0.0.1:1", "127.0.0.1:2"};

TEST_CASE("a server that moves is told of once, and at once where it is somewhere else already") {
  ServerAddresses addresses(kTwo);
  int moved = 0;
  addresses.watch(1, "127.0.0.1:2", [&] { ++moved; });
  addresses.move({{0, "127.0.0.1:1"}, {1, "127.0.0.1:2"}, {7, "127.0.0.1:9"}});
  CHECK(moved == 0);
  CHECK(addresses.moves() == 0);
  addresses.move({{1, "127.0.0.1:3"}});
  addresses.move({{1, "127.0.0.1:4"}});
  CHECK(moved == 1);
  CHECK(addresses.moves() == 2);
  CHECK(addresses.moves(0) == 0);
  CHECK(addresses.moves(1) == 2);
  CHECK(addresses.all() == std::vector<std::string>{"127.0.0.1:1", "127.0.0.1:4"});
  addresses.watch(1, "127.0.0.1:3", [&] { ++moved; });
  CHECK(moved == 2);
}

TEST_CASE("a server keeps its holder until both are on one host, and then has the next on another") {
  using Endpoints = std::vector<std::string>;
  const Endpoints first{"a:1", "b:1", "c:1", "d:1"};
  CHECK(standby_now(1, first, first) == 2);
  const Endpoints without_b{"a:1", "c:2", "c:1", "d:1"};
  CHECK(standby_now(0, first, without_b) == 1);
  CHECK(standby_now(1, first, without_b) == 3);
  CHECK(standby_now(2, first, without_b) == 3);
  const Endpoints a_and_d{"a:1", "d:2", "d:3", "d:1"};
  CHECK(standby_now(0, first, a_and_d) == 1);
  CHECK(standby_now(1, first, a_and_d) == 0);
  CHECK(standby_now(2, first, a_and_d) == 0);
  CHECK(standby_now(3, first, a_and_d) == 0);
  CHECK_FALSE(standby_now(0, first, {"d:4", "d:2", "d:3", "d:1"}));
  CHECK(standby_now(0, kTwo, kTwo) == 1);
  CHECK_FALSE(standby_now(0, {"a:1"}, {"a:1"}));
}

TEST_CASE("where all servers have come to be on one host there is no standby") {
  const auto addresses = std::make_shared<ServerAddresses>(std::vector<std::string>{"a:1", "b:1"});
  const StandbyOptions standby = standby_at(1, addresses, {}, Transport::automatic);
  CHECK(standby.name() == "server 0");
  const std::uint64_t before = standby.moves();
  addresses->move({{0, "b:4"}});
  CHECK(standby.moves() != before);
  CHECK(standby.name() == "another host");
  CHECK(text_of([&] { standby.connect(std::atomic<bool>(false)); }) ==
        "all servers are on this host since the others were lost");
}

TEST_CASE("a server's environment says whether it has a standby") {
  const auto options = [](const std::string& replicas, const std::string& kept) {
    return standby_options_of(Environ({{"FLEETRUN_PS_REPLICAS", replicas},
                                       {"FLEETRUN_PS_CHECKPOINT", kept},
                                       {"FLEETRUN_INSECURE", "1"}}),
                              1, std::make_shared<ServerAddresses>(kTwo));
  };
  CHECK_FALSE(options("0", "kept").connect);
  CHECK(options("1", "kept").name() == "server 0");
  CHECK(text_of([&] { options("2", "kept"); }) == "FLEETRUN_PS_REPLICAS=2 is neither 0 nor 1");
  CHECK(text_of([&] { options("1", ""); }) == "FLEETRUN_PS_REPLICAS=1 without FLEETRUN_PS_CHECKPOINT");
}
