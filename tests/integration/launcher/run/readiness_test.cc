#include "launcher/run/readiness.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <fstream>
#include <optional>

#include <doctest/doctest.h>

#include "launcher/host/port_lease.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using Kind = Readiness::Kind;

namespace {

constexpr std::chrono::seconds kDeadline{20};

/// A readiness probe and its answer.
class Waiting {
 public:
  Waiting(const Readiness& readiness, std::vector<ReadySign> signs,
          std::chrono::milliseconds timeout = kDeadline)
      : readiness_probe_(
            watch_role(loop_, readiness, std::move(signs), timeout, [this](bool all) { answer_ = all; })) {}

  /// Runs the loop until the readiness probe has answered, or there is nothing left to wait for.
  std::optional<bool> run() {
    while (!answer_ && loop_.run_one() > 0) continue;
    return answer_;
  }

  /// Lets everything happen that is due now.
  std::optional<bool> poll() {
    loop_.poll();
    loop_.restart();
    return answer_;
  }

  ReadinessProbe& readiness_probe() { return *readiness_probe_; }
  boost::asio::io_context& loop() { return loop_; }

 private:
  boost::asio::io_context loop_;
  std::optional<bool> answer_;
  std::unique_ptr<ReadinessProbe> readiness_probe_;
};

std::vector<ReadySign> signs(ReadySign first) {
  std::vector<ReadySign> all;
  all.push_back(std::move(first));
  return all;
}

UniqueFd listen_at(const Endpoint& endpoint) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::bind(fd.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(fd.value(), 4) == 0);
  return fd;
}

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app | std::ios::binary) << text;
}

}  // namespace

TEST_CASE("a role without readiness is ready at once, but never from within the call") {
  Waiting waiting({Kind::none, ""}, signs(ReadySign()));
  CHECK(waiting.run() == true);
}

TEST_CASE("a role is ready when every process listens, or has ended well") {
  PortLeases leases;
  std::vector<ReadySign> all(3);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].index = 10 + i;
    all[i].endpoint = leases.lease_free("127.0.0.1");
  }
  const Endpoint first = all[0].endpoint, last = all[2].endpoint;
  Waiting waiting({Kind::port, ""}, std::move(all));
  leases.release(first);
  leases.release(last);
  const UniqueFd one = listen_at(first);
  CHECK_FALSE(waiting.poll());
  waiting.readiness_probe().forget(11);
  waiting.readiness_probe().forget(99);
  CHECK_FALSE(waiting.poll());
  const UniqueFd two = listen_at(last);
  CHECK(waiting.run() == true);
}

TEST_CASE("a readiness may name a port that is nobody's own") {
  PortLeases leases;
  const Endpoint endpoint = leases.lease_free("127.0.0.1");
  leases.release(endpoint);
  const UniqueFd listening = listen_at(endpoint);
  Waiting waiting({Kind::port, to_string(endpoint)}, signs(ReadySign()));
  CHECK(waiting.run() == true);
}

TEST_CASE("a line of the log counts once it is whole, and none from before this start") {
  const tests::TempDir directory;
  const std::string log = directory.write("a.log", "model saved: 0\n");
  ReadySign sign;
  sign.log = log;
  sign.log_start = 15;
  Waiting waiting({Kind::log_line, "saved: [0-9]+$"}, signs(std::move(sign)));
  CHECK_FALSE(waiting.poll());
  append(log, "loading\nmodel sav");
  CHECK_FALSE(waiting.poll());
  append(log, "ed: 12");
  CHECK_FALSE(waiting.poll());
  append(log, "\n");
  CHECK(waiting.run() == true);
}

TEST_CASE("a line that is there already when the watch begins counts too") {
  const tests::TempDir directory;
  ReadySign sign;
  sign.log = directory.write("a.log", "ready\n");
  Waiting waiting({Kind::log_line, "ready"}, signs(std::move(sign)));
  CHECK(waiting.run() == true);
}

TEST_CASE("a very long line is searched without exhausting the stack") {
  const tests::TempDir directory;
  ReadySign sign;
  sign.log = directory.write("a.log", std::string(100'000, 'x') + "\nready\n");
  Waiting waiting({Kind::log_line, "(up|ready)"}, signs(std::move(sign)));
  CHECK(waiting.run() == true);
}

TEST_CASE("a newline on the descriptor says ready; closing it without a word does not") {
  auto [reading, writing] = ready_pipe();
  ReadySign sign;
  sign.descriptor = std::move(reading);
  Waiting waiting({Kind::descriptor, ""}, signs(std::move(sign)));
  REQUIRE(::write(writing.value(), "up", 2) == 2);
  CHECK_FALSE(waiting.poll());
  REQUIRE(::write(writing.value(), "\n", 1) == 1);
  CHECK(waiting.run() == true);

  auto [other, silent] = ready_pipe();
  ReadySign dead;
  dead.descriptor = std::move(other);
  silent.reset();
  Waiting in_vain({Kind::descriptor, ""}, signs(std::move(dead)), std::chrono::milliseconds(1));
  CHECK(in_vain.run() == false);
}

TEST_CASE("a readiness probe that is stopped never answers, and keeps no loop running") {
  const tests::TempDir directory;
  std::vector<ReadySign> all(2);
  all[0].index = 0;
  all[1].index = 1;
  all[0].log = all[1].log = directory.write("a.log", "ready\n");
  Waiting waiting({Kind::log_line, "ready"}, std::move(all));
  waiting.readiness_probe().stop();
  CHECK_FALSE(waiting.run());
}
