#include "launcher/host/port_lease.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

sockaddr_in loopback(const Endpoint& endpoint) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// A socket that listens at `endpoint`, with these options set before it is bound; empty when it cannot be.
UniqueFd listener(const Endpoint& endpoint, const std::vector<int>& options = {}) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  for (const int option : options) ::setsockopt(fd.value(), SOL_SOCKET, option, &on, sizeof on);
  const sockaddr_in address = loopback(endpoint);
  if (::bind(fd.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.value(), 16) != 0)
    fd.reset();
  return fd;
}

/// Whether an ordinary server could bind `endpoint` now.
bool can_bind(const Endpoint& endpoint) {
  return static_cast<bool>(listener(endpoint));
}

}  // namespace

TEST_CASE("a leased port is nobody else's until it is released") {
  PortLeases mine, theirs;
  const Endpoint endpoint = mine.lease_free("127.0.0.1");
  CHECK(endpoint.host == "127.0.0.1");
  CHECK_FALSE(can_bind(endpoint));
  CHECK_FALSE(theirs.lease(endpoint));
  mine.release(endpoint);
  CHECK(can_bind(endpoint));
  CHECK(theirs.lease(endpoint));
  CHECK_FALSE(can_bind(endpoint));
}

TEST_CASE("a shared lease lets a server with SO_REUSEPORT listen beside it, and nobody else") {
  PortLeases mine, theirs;
  const Endpoint endpoint = mine.lease_free("127.0.0.1");
  CHECK_FALSE(listener(endpoint, {SO_REUSEPORT}));  // not before it is shared
  mine.share(endpoint);
  for (int start = 0; start < 2; ++start) {  // a restarted server finds its port as the first one did
    CHECK_FALSE(listener(endpoint));
    CHECK_FALSE(listener(endpoint, {SO_REUSEADDR}));
    CHECK_FALSE(theirs.lease(endpoint));
    const UniqueFd server = listener(endpoint, {SO_REUSEPORT, SO_REUSEADDR});
    REQUIRE(server);
    CHECK_FALSE(listener(endpoint));
    CHECK_FALSE(listener(endpoint, {SO_REUSEADDR}));
    CHECK_FALSE(theirs.lease(endpoint));
    for (int i = 0; i < 32; ++i) {  // every connection is the server's: the lease does not listen
      const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const sockaddr_in address = loopback(endpoint);
      REQUIRE(::connect(client.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
      CHECK(UniqueFd(::accept4(server.value(), nullptr, nullptr, SOCK_NONBLOCK)));
    }
  }
}

TEST_CASE("a shared lease is closed to other users") {
  if (::getuid() != 0) {
    MESSAGE("left out: only root can become somebody else");
    return;
  }
  PortLeases leases;
  const Endpoint endpoint = leases.lease_free("127.0.0.1");
  leases.share(endpoint);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::setuid(65534) == 0 && !listener(endpoint, {SO_REUSEPORT}) ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("a chosen port is chosen by no other fleetrun, though it is released, until it is given up") {
  PortLeases mine, theirs;
  const Endpoint endpoint = mine.lease_free("127.0.0.1");
  theirs.set_range(endpoint.port, endpoint.port);
  mine.release(endpoint);
  CHECK(can_bind(endpoint));
  CHECK_THROWS_AS(theirs.lease_free("127.0.0.1"), Error);
  mine.give_up(endpoint);
  CHECK(theirs.lease_free("127.0.0.1") == endpoint);
}

TEST_CASE("a port that was released for a process is leased again only when no other is free") {
  PortLeases leases;
  Endpoint first = leases.lease_free("127.0.0.1"), second = first;
  // Two neighbours, whoever else has ports here.
  do {
    leases.give_up(first);
    leases.give_up(second);
    first = leases.lease_free("127.0.0.1");
    second = {first.host, static_cast<std::uint16_t>(first.port + 1)};
  } while (!leases.lease(second));
  leases.release(first);
  leases.give_up(second);
  leases.set_range(first.port, second.port);
  CHECK(leases.lease_free("127.0.0.1") == second);
  CHECK(leases.lease_free("127.0.0.1") == first);
}

TEST_CASE("a port that was left out is not taken for a free one, and leased where it is named") {
  PortLeases leases;
  const Endpoint endpoint = PortLeases().lease_free("127.0.0.1");
  leases.set_range(endpoint.port, endpoint.port);
  leases.leave_out(endpoint.port);
  CHECK_THROWS_AS(leases.lease_free("127.0.0.1"), Error);
  CHECK(leases.lease(endpoint));
}

TEST_CASE("many leases are all different") {
  PortLeases leases;
  std::vector<Endpoint> all;
  for (int i = 0; i < 300; ++i) all.push_back(leases.lease_free("127.0.0.1"));
  CHECK(parse_endpoint_list(to_string(all)).size() == 300);
}

TEST_CASE(
    "jobs that come one after the other get ports all over the range, not the first one above the kernel's") {
  std::map<int, int> seen;
  int max = 0;
  for (int i = 0; i < 64; ++i) {
    PortLeases job;
    max = std::max(max, ++seen[job.lease_free("127.0.0.1").port]);
  }
  CHECK(max <= 8);  // 1 or 2; half of the 64 when draws inside the kernel's range all end at its upper edge
}

TEST_CASE("an address of another host, and a name that is none, are refused") {
  PortLeases leases;
  CHECK_THROWS_WITH_AS(leases.lease_free("192.0.2.1"), "'192.0.2.1' is not an address of this host", Error);
  CHECK_THROWS_AS(leases.lease({"no_such.invalid", 8000}), Error);
  CHECK(is_this_host("127.0.0.1"));
  CHECK(is_this_host("localhost"));  // also in a root without /etc/hosts
  CHECK_FALSE(is_this_host("192.0.2.1"));
}
