#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>

#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/connect/connector.h"

namespace {

using namespace fleetrun;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A port that answers nothing to one more connection, as one behind a firewall: its queue is full.
class SilentPort {
 public:
  SilentPort() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(listener_.value(), raw, size) == 0);
    REQUIRE(::getsockname(listener_.value(), raw, &size) == 0);
    REQUIRE(::listen(listener_.value(), 0) == 0);
    for (int i = 0; i < 4; ++i) {
      waiting_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      static_cast<void>(::connect(waiting_.back().value(), raw, size));
    }
    endpoint = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }

  std::string endpoint;

 private:
  UniqueFd listener_;
  std::vector<UniqueFd> waiting_;
};

TEST_CASE("only attempts that are all cut off are hopeless, and only after a while") {
  Silence silence(milliseconds(30'000)), among_hosts_that_never_met;
  CHECK(silence.hint("start it") == "start it");
  silence.after(true, Clock::now() - milliseconds(29'000));
  CHECK_FALSE(silence.is_hopeless());
  silence.after(false, Clock::now());
  CHECK(silence.hint("start it") == "start it");
  silence.after(true, Clock::now() - milliseconds(31'000));
  CHECK(silence.is_hopeless());
  among_hosts_that_never_met.after(true, Clock::now() - milliseconds(3'000'000));
  CHECK_FALSE(among_hosts_that_never_met.is_hopeless());
  CHECK(silence.hint("start it").find("a firewall may be between") != std::string::npos);
}

TEST_CASE("who gets no answer at all does not wait until the deadline, and hears of firewalls") {
  const SilentPort port;
  try {
    connect_until(port.endpoint, {.name = "rank 0"}, Clock::now() + std::chrono::minutes(5), {},
                  Silence(milliseconds(1)));
    FAIL("nobody is there");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::network);
    CHECK(std::string(error.what()) == "rank 0 cannot be reached: no answer to a connection");
    CHECK(error.hint().find("a firewall may be between") != std::string::npos);
  }
}

TEST_CASE("a port where nobody listens yet is tried until the deadline") {
  const auto begun = Clock::now();
  CHECK_THROWS_AS(connect_until("127.0.0.1:1", {.name = "rank 0"}, begun + milliseconds(300), {},
                                Silence(milliseconds(1))),
                  Error);
  CHECK(Clock::now() >= begun + milliseconds(150));
}

}  // namespace
