#include "launcher/port_lease.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

/// Whether an ordinary server could bind `endpoint` now.
bool can_bind(const Endpoint& endpoint) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::bind(fd.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
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

TEST_CASE("many leases are all different") {
  PortLeases leases;
  std::vector<Endpoint> all;
  for (int i = 0; i < 300; ++i) all.push_back(leases.lease_free("127.0.0.1"));
  CHECK(parse_endpoint_list(to_string(all)).size() == 300);
}

TEST_CASE(
    "jobs that come one after the other get ports all over the range, not the first one above the kernel's") {
  std::map<int, int> seen;
  int most = 0;
  for (int i = 0; i < 64; ++i) {
    PortLeases job;
    most = std::max(most, ++seen[job.lease_free("127.0.0.1").port]);
  }
  CHECK(most <= 8);  // 1 or 2; half of the 64 when draws inside the kernel's range all end at its upper edge
}

TEST_CASE("an address of another host, and a name that is none, are refused") {
  PortLeases leases;
  CHECK_THROWS_WITH_AS(leases.lease_free("192.0.2.1"), "'192.0.2.1' is not an address of this host", Error);
  CHECK_THROWS_AS(leases.lease({"no_such.invalid", 8000}), Error);
  CHECK(is_this_host("127.0.0.1"));
  // A root without /etc/hosts does not know the name.
  addrinfo* found = nullptr;
  const bool known = ::getaddrinfo("localhost", nullptr, nullptr, &found) == 0;
  if (known) ::freeaddrinfo(found);
  CHECK(is_this_host("localhost") == known);
  CHECK_FALSE(is_this_host("192.0.2.1"));
}
