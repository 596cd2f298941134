#include "ps/rpc/standby_link.h"

#include <doctest/doctest.h>

#include <set>

#include "runtime/base/environ.h"
#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::Environ;
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

TEST_CASE("a server's environment says whether it has a standby") {
  const auto options = [](const std::string& replicas, const std::string& kept) {
    return standby_options_of(Environ({{"FLEETRUN_PS_REPLICAS", replicas},
                                       {"FLEETRUN_PS_CHECKPOINT", kept},
                                       {"FLEETRUN_INSECURE", "1"},
                                       {"PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.1:1,127.0.0.1:2"}}),
                              1);
  };
  CHECK_FALSE(options("0", "kept").connect);
  CHECK(options("1", "kept").name == "server 0");
  CHECK(text_of([&] { options("2", "kept"); }) == "FLEETRUN_PS_REPLICAS=2 is neither 0 nor 1");
  CHECK(text_of([&] { options("1", ""); }) == "FLEETRUN_PS_REPLICAS=1 without FLEETRUN_PS_CHECKPOINT");
}
