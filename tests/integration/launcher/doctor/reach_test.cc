#include "launcher/doctor/reach.h"

#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <doctest/doctest.h>

#include "launcher/host/port_lease.h"
#include "launcher/net/socket_address.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace fleetrun::launcher::doctor;
using namespace std::chrono_literals;

namespace {

std::vector<Reach> dial(boost::asio::io_context& loop, const std::vector<Target>& targets,
                        const std::string& key, std::chrono::milliseconds patience = 20s) {
  std::vector<Reach> result;
  bool over = false;
  const auto dialing = dial_all(loop, targets, key, patience, [&](const std::vector<Reach>& reaches) {
    result = reaches;
    over = true;
    loop.stop();
  });
  loop.restart();
  loop.run_for(40s);
  CHECK(over);
  return result;
}

/// Somebody who listens and says nothing.
class Silent {
 public:
  Silent() : socket_(listening_socket(*numeric_address({"127.0.0.1", 0}))) {}
  Endpoint endpoint() const { return to_endpoint(*local_address(socket_.value())); }

 private:
  UniqueFd socket_;
};

}  // namespace

TEST_CASE("a doctor that listens is reached by those who have the key") {
  boost::asio::io_context loop;
  const auto one = listen_for_doctors(loop, "127.0.0.1", "key"),
             other = listen_for_doctors(loop, "127.0.0.2", "key");
  const auto reaches = dial(loop, {{1, one->endpoints()[0]}, {2, other->endpoints()[0]}}, "key");
  REQUIRE(reaches.size() == 2);
  for (std::uint32_t i = 0; i < 2; ++i) {
    CHECK(reaches[i].host == i + 1);
    CHECK(reaches[i].failure.empty());
    CHECK(reaches[i].micros > 0);
  }
}

TEST_CASE("whoever else answers at the address is not taken for the doctor") {
  boost::asio::io_context loop;
  const auto stranger = listen_for_doctors(loop, "127.0.0.1", "another key");
  const Silent silent;
  PortLeases leases;
  const Endpoint nobody = leases.lease_free("127.0.0.1");
  const auto reaches =
      dial(loop, {{0, stranger->endpoints()[0]}, {1, silent.endpoint()}, {2, nobody}, {3, {"h3", 1}}}, "key",
           500ms);
  REQUIRE(reaches.size() == 4);
  CHECK(reaches[0].failure == "another process listens there");
  CHECK(reaches[1].failure == "it was let in, and got no answer");
  CHECK(reaches[2].failure == "Connection refused");
  CHECK(reaches[3].failure == "'h3' is not an address");
}

TEST_CASE(
    "a doctor listens at eight ports, and all of them answer; of a small range at as many as there are") {
  boost::asio::io_context loop;
  const auto one = listen_for_doctors(loop, "127.0.0.1", "key");
  REQUIRE(one->endpoints().size() == 8);
  std::vector<Target> targets;
  for (const Endpoint& endpoint : one->endpoints()) targets.push_back({1, endpoint});
  for (const Reach& reach : dial(loop, targets, "key")) CHECK(reach.failure.empty());
  PortLeases leases;
  const Endpoint free = leases.lease_free("127.0.0.2");
  leases.give_up(free);
  const auto other = listen_for_doctors(loop, "127.0.0.2", "key", std::pair<int, int>(free.port, free.port));
  CHECK(other->endpoints() == std::vector{free});
}

TEST_CASE("what was tried at several ports of a host is one answer, which names those that are closed") {
  const std::vector<Target> targets = {{1, {"a", 10}}, {1, {"a", 11}}, {2, {"b", 10}}, {2, {"b", 11}},
                                       {3, {"c", 10}}, {3, {"c", 11}}, {3, {"c", 12}}};
  CHECK(reaches_by_host(targets, {{1, "", 5},
                                  {1, "", 6},
                                  {2, "no answer", 9},
                                  {2, "no answer", 9},
                                  {3, "", 7},
                                  {3, "no answer", 9},
                                  {3, "", 8}}) ==
        std::vector<Reach>{{1, "", 5},
                           {2, "no answer", 9},
                           {3, "no answer, at port 11 and not at 2 others of the range", 7}});
  const std::string large = "small packets come through and large ones do not (MTU?)";
  CHECK(reaches_by_host(targets, {{1, large, 5}, {1, "", 6}}) == std::vector<Reach>{{1, large, 5}});
  CHECK(reaches_by_host(targets, {}).empty());
}

TEST_CASE("nobody to dial is answered too") {
  boost::asio::io_context loop;
  CHECK(dial(loop, {}, "key").empty());
}

TEST_CASE("a doctor cannot listen at an address of another host") {
  boost::asio::io_context loop;
  CHECK_THROWS_AS(listen_for_doctors(loop, "192.0.2.200", "key"), Error);
}
