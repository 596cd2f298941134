#include "launcher/cluster/rendezvous_address.h"

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

SocketAddress address(const std::string& host, std::uint16_t port = 7777) {
  return numeric_address({host, port}).value();
}

std::vector<Endpoint> meet_at(const std::string& host, std::vector<SocketAddress> found) {
  std::vector<Endpoint> places;
  for (const SocketAddress& place : rendezvous_addresses({host, 7777}, {std::move(found), ""}))
    places.push_back(to_endpoint(place));
  return places;
}

}  // namespace

TEST_CASE("a host meets others at the address that its name stands for") {
  CHECK(meet_at("h1", {address("10.0.0.1"), address("fd00::1")}) ==
        std::vector<Endpoint>{{"10.0.0.1", 7777}, {"fd00::1", 7777}});
  CHECK(meet_at("h1", {address("127.0.1.1"), address("10.0.0.1")}).size() == 2);
}

TEST_CASE("the loopback is meant where it is written, and not where a host only knows its own name as that") {
  CHECK(meet_at("127.0.0.5", {address("127.0.0.5")}) == std::vector<Endpoint>{{"127.0.0.5", 7777}});
  CHECK(meet_at("localhost", {address("127.0.0.1")}) == std::vector<Endpoint>{{"127.0.0.1", 7777}});
  const SocketAddress outward = outward_address();
  const auto places = meet_at("h1", {address("127.0.1.1")});
  REQUIRE(places.size() == 1);
  CHECK(places[0].port == 7777);
  CHECK(places[0].host == (is_loopback(outward) ? "127.0.1.1" : to_endpoint(outward).host));
}

TEST_CASE("addresses are told apart") {
  CHECK(is_loopback(address("127.3.2.1")));
  CHECK(is_loopback(address("::1")));
  CHECK(is_loopback(address("::ffff:127.0.0.1")));
  CHECK_FALSE(is_loopback(address("10.0.0.1")));
  CHECK(is_any(address("0.0.0.0")));
  CHECK(is_any(address("::")));
  CHECK_FALSE(is_any(address("::1")));
  CHECK(is_link_local(address("169.254.1.1")));
  CHECK(is_link_local(address("fe80::1")));
  CHECK_FALSE(is_link_local(address("fd00::1")));
  CHECK_FALSE(numeric_address({"h1", 7777}));
  CHECK(to_endpoint(with_port(address("fd00::1"), 5)) == Endpoint{"fd00::1", 5});
}

TEST_CASE("a host reaches itself from the loopback, and nobody from an address that is none") {
  const auto own = address_facing(address("127.0.0.1"));
  REQUIRE(own);
  CHECK(to_endpoint(*own) == Endpoint{"127.0.0.1", 0});
}

TEST_CASE("only addresses of this host are listened at") {
  CHECK(may_be_own(address("127.0.0.9")));
  CHECK(may_be_own(address("0.0.0.0")));
  CHECK(may_be_own(outward_address()));
  CHECK_FALSE(may_be_own(address("192.0.2.1")));
}

TEST_CASE("a name that nobody knows stays as it is") {
  CHECK(rendezvous_endpoint({"no-such-host.invalid", 7777}) == Endpoint{"no-such-host.invalid", 7777});
  CHECK(rendezvous_endpoint({"localhost", 7777}).port == 7777);
}
