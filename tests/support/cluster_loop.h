// One loop for all sides of a connection, and what tests wait for in it.
#pragma once

#include <boost/asio/io_context.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "launcher/cluster/channel_server.h"
#include "launcher/cluster/sealed_channel.h"
#include "launcher/net/socket_address.h"

namespace fleetrun::tests {

constexpr std::chrono::seconds kPatience{20};

/// Turns the loop until `done()`, and fails the test where that does not come to be.
template <class Done>
void turn_until(boost::asio::io_context& loop, Done done, std::chrono::milliseconds patience = kPatience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  loop.restart();
  while (!done()) {
    if (std::chrono::steady_clock::now() >= until) FAIL("what was waited for did not come");
    loop.run_one_for(std::chrono::milliseconds(100));
    if (loop.stopped()) loop.restart();
  }
}

inline launcher::ChannelSettings channel_settings(
    std::string_view secret = "0123456789abcdefghijklmnopqrstuv") {
  launcher::ChannelSettings settings;
  settings.secret = Secret::from_bytes(secret);
  settings.secret_source = "/users/me/secret";
  settings.version = "1.2.3";
  return settings;
}

inline UniqueFd listen_at(const std::string& host, std::uint16_t port = 0) {
  return launcher::listening_socket(launcher::numeric_address({host, port}).value());
}

/// What happened on the calling side of a channel.
struct Caller final : launcher::ChannelListener {
  bool open = false;
  std::vector<std::string> messages;
  std::optional<launcher::ChannelClosed> closed;
  std::unique_ptr<launcher::Channel> channel;

  void on_open() override { open = true; }
  void on_message(std::string_view message) override { messages.emplace_back(message); }
  void on_closed(const launcher::ChannelClosed& why) override { closed = why; }
};

/// What happened at a server.
struct Host final : launcher::ChannelServerListener {
  std::vector<std::pair<launcher::ConnectionId, std::string>> messages;
  std::vector<launcher::ConnectionId> opened;
  std::vector<std::pair<launcher::ConnectionId, launcher::ChannelClosed>> closed;
  std::vector<launcher::ChannelClosed> refused;
  std::vector<launcher::StrangerCount> strangers;
  std::unique_ptr<launcher::ChannelServer> server;
  bool echoes = false;

  std::uint64_t turned_away() const {
    std::uint64_t sum = 0;
    for (const auto& count : strangers) sum += count.turned_away;
    return sum;
  }

  void on_open(launcher::ConnectionId id, const std::string&) override { opened.push_back(id); }
  void on_message(launcher::ConnectionId id, std::string_view message) override {
    messages.emplace_back(id, message);
    if (echoes) server->send(id, message);
  }
  void on_closed(launcher::ConnectionId id, const launcher::ChannelClosed& why) override {
    closed.emplace_back(id, why);
  }
  void on_refused(const launcher::ChannelClosed& why) override { refused.push_back(why); }
  void on_strangers(const launcher::StrangerCount& count) override { strangers.push_back(count); }
};

/// Somebody who speaks bytes of his own, and waits for nothing.
class Stranger {
 public:
  explicit Stranger(const Endpoint& endpoint) : Stranger(launcher::numeric_address(endpoint).value()) {}
  explicit Stranger(const launcher::SocketAddress& address)
      : fd_(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    REQUIRE(::connect(fd_.value(), address.raw(), address.length) == 0);
  }

  void say(std::string_view bytes) {
    REQUIRE(::send(fd_.value(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
  /// What has come up to now.
  const std::string& heard() {
    char piece[65'536];
    for (;;) {
      const ssize_t count = ::recv(fd_.value(), piece, sizeof piece, MSG_DONTWAIT);
      if (count <= 0) {
        over_ = over_ || count == 0 || (errno != EAGAIN && errno != EINTR);
        return heard_;
      }
      heard_.append(piece, static_cast<std::size_t>(count));
    }
  }
  bool is_cut_off() {
    heard();
    return over_;
  }
  int fd() const noexcept { return fd_.value(); }

 private:
  UniqueFd fd_;
  std::string heard_;
  bool over_ = false;
};

}  // namespace fleetrun::tests
