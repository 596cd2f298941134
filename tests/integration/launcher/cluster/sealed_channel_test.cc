#include "launcher/cluster/sealed_channel.h"

#include "runtime/secure/handshake.h"
#include "tests/support/cluster_loop.h"
#include "tests/support/meddler.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace fleetrun::tests;
using namespace std::chrono_literals;

namespace {

struct Rendezvous {
  boost::asio::io_context loop{1};
  Host host;
  Caller caller;

  explicit Rendezvous(const ChannelSettings& server = channel_settings(),
                      const ChannelSettings& client = channel_settings(),
                      const std::string& address = "127.0.0.1") {
    host.server = serve(loop, listen_at(address), server, {}, host);
    caller.channel = dial(loop, host.server->endpoints()[0], client, caller);
  }
  template <class Done>
  void until(Done done) {
    turn_until(loop, done);
  }
  void open() {
    until([&] { return caller.open && !host.opened.empty(); });
  }
};

}  // namespace

TEST_CASE("launchers with one secret talk, in order, both ways") {
  Rendezvous rendezvous;
  rendezvous.open();
  const std::string large(3'000'000, 'x');
  rendezvous.caller.channel->send("one");
  rendezvous.caller.channel->send("");
  rendezvous.caller.channel->send(large);
  rendezvous.until([&] { return rendezvous.host.messages.size() == 3; });
  CHECK(rendezvous.host.messages[0].second == "one");
  CHECK(rendezvous.host.messages[1].second == "");
  CHECK(rendezvous.host.messages[2].second == large);
  rendezvous.host.server->send(rendezvous.host.opened[0], large + "!");
  rendezvous.until([&] { return !rendezvous.caller.messages.empty(); });
  CHECK(rendezvous.caller.messages[0] == large + "!");
  CHECK(rendezvous.caller.channel->peer() == to_string(rendezvous.host.server->endpoints()[0]));
  CHECK(rendezvous.caller.channel->own_address().starts_with("127.0.0.1:"));
}

TEST_CASE("what was sent before a goodbye arrives, and the goodbye is told from a broken connection") {
  Rendezvous rendezvous;
  rendezvous.open();
  const std::string large(5'000'000, 'x');
  rendezvous.caller.channel->send(large);
  rendezvous.caller.channel->close();
  rendezvous.caller.channel.reset();  // the rest is sent in the background
  rendezvous.until([&] { return !rendezvous.host.closed.empty(); });
  REQUIRE(rendezvous.host.messages.size() == 1);
  CHECK(rendezvous.host.messages[0].second == large);
  CHECK(rendezvous.host.closed[0].second.end == ChannelEnd::goodbye);
  CHECK_FALSE(rendezvous.caller.closed);
}

TEST_CASE("a broken connection is no goodbye, whether writing or reading finds it first") {
  Rendezvous rendezvous;
  rendezvous.open();
  bool writes = false;
  SUBCASE("reading") {}
  SUBCASE("writing") {
    writes = true;
  }
  SUBCASE("a channel that goes without close()") {
    rendezvous.caller.channel.reset();
  }
  if (rendezvous.caller.channel) rendezvous.caller.channel->cut();
  if (writes) rendezvous.host.server->send(rendezvous.host.opened[0], "to nobody");
  rendezvous.until([&] { return !rendezvous.host.closed.empty(); });
  CHECK(rendezvous.host.closed[0].second.end == ChannelEnd::broken);
  CHECK(rendezvous.host.closed[0].second.why.find("reset by peer") != std::string::npos);
}

TEST_CASE("a server closes a connection after what it has sent there") {
  Rendezvous rendezvous;
  rendezvous.open();
  rendezvous.host.server->send(rendezvous.host.opened[0], "the end");
  rendezvous.host.server->close(rendezvous.host.opened[0]);
  rendezvous.until([&] { return rendezvous.caller.closed.has_value(); });
  CHECK(rendezvous.caller.messages == std::vector<std::string>{"the end"});
  CHECK(rendezvous.caller.closed->end == ChannelEnd::goodbye);
  CHECK(rendezvous.host.closed.empty());
}

TEST_CASE("a channel may be destroyed while it tells something") {
  struct Fickle final : ChannelListener {
    std::unique_ptr<Channel> channel;
    int heard = 0;
    void on_open() override {}
    void on_message(std::string_view) override {
      ++heard;
      channel.reset();
    }
    void on_closed(const ChannelClosed&) override { ++heard; }
  } fickle;
  boost::asio::io_context loop{1};
  Host host;
  host.server = serve(loop, listen_at("127.0.0.1"), channel_settings(), {}, host);
  fickle.channel = dial(loop, host.server->endpoints()[0], channel_settings(), fickle);
  turn_until(loop, [&] { return !host.opened.empty(); });
  host.server->send(host.opened[0], "one");
  host.server->send(host.opened[0], "two");
  turn_until(loop, [&] { return !host.closed.empty(); });
  CHECK(fickle.heard == 1);
}

TEST_CASE("with another secret both sides say so, at once, and name their own file") {
  ChannelSettings other = channel_settings("another secret of just 32 bytes!");
  other.secret_source = "/users/you/secret";
  Rendezvous rendezvous(channel_settings(), other);
  rendezvous.until([&] { return rendezvous.caller.closed && !rendezvous.host.refused.empty(); });
  CHECK(rendezvous.caller.closed->end == ChannelEnd::refused);
  CHECK(rendezvous.caller.closed->why == to_string(rendezvous.host.server->endpoints()[0]) +
                                             " has another secret than this host (/users/you/secret)");
  CHECK(rendezvous.caller.closed->hint.find("--secret-file") != std::string::npos);
  CHECK(rendezvous.host.refused[0].why.find(" has another secret than this host (/users/me/secret)") !=
        std::string::npos);
  CHECK(rendezvous.host.opened.empty());
}

TEST_CASE("another version and --insecure on one side are refused in words") {
  ChannelSettings insecure = channel_settings();
  insecure.secret.reset();
  Rendezvous rendezvous(insecure);
  rendezvous.until([&] { return rendezvous.caller.closed && !rendezvous.host.refused.empty(); });
  CHECK(rendezvous.caller.closed->end == ChannelEnd::refused);
  CHECK(rendezvous.caller.closed->why.find("runs with --insecure") != std::string::npos);
  CHECK(rendezvous.host.refused[0].why.find("runs without --insecure") != std::string::npos);
  Rendezvous both(insecure, insecure);
  both.open();
}

TEST_CASE("nobody there, nobody of that name, and somebody who is no fleetrun") {
  boost::asio::io_context loop{1};
  Caller nobody, unknown, silent;
  const UniqueFd closed_port = listen_at("127.0.0.1");
  const Endpoint gone = to_endpoint(local_address(closed_port.value()).value());
  ::shutdown(closed_port.value(), SHUT_RDWR);  // bound, and nobody listens
  nobody.channel = dial(loop, gone, channel_settings(), nobody);
  unknown.channel = dial(loop, {"no-such-host.invalid", 80}, channel_settings(), unknown);
  const UniqueFd mute = listen_at("127.0.0.1");  // accepts by its backlog, and never answers
  ChannelSettings hasty = channel_settings();
  hasty.handshake_timeout = 50ms;
  silent.channel = dial(loop, to_endpoint(local_address(mute.value()).value()), hasty, silent);
  turn_until(loop, [&] { return nobody.closed && unknown.closed && silent.closed; });
  CHECK(nobody.closed->end == ChannelEnd::unreachable);
  CHECK(nobody.closed->why == to_string(gone) + ": Connection refused");
  CHECK(unknown.closed->end == ChannelEnd::unreachable);
  CHECK(unknown.closed->why.starts_with("no-such-host.invalid:80: "));
  CHECK(silent.closed->end == ChannelEnd::unreachable);
  CHECK(silent.closed->why.find("did not answer as a fleetrun does") != std::string::npos);
}

TEST_CASE("what answers a launcher with something else is named as what it is") {
  boost::asio::io_context loop{1};
  Caller caller;
  const UniqueFd web = listen_at("127.0.0.1");
  caller.channel = dial(loop, to_endpoint(local_address(web.value()).value()), channel_settings(), caller);
  UniqueFd accepted;
  turn_until(loop, [&] {
    accepted.reset(::accept4(web.value(), nullptr, nullptr, SOCK_CLOEXEC));
    return static_cast<bool>(accepted);
  });
  REQUIRE(::send(accepted.value(), "HTTP/1.1 400 Bad Request\r\n", 26, MSG_NOSIGNAL) == 26);
  turn_until(loop, [&] { return caller.closed.has_value(); });
  CHECK(caller.closed->end == ChannelEnd::stranger);
  CHECK(caller.closed->why.find("is not fleetrun: it begins with 'HTTP/1.1 400 Bad") != std::string::npos);
}

TEST_CASE("names are looked up, and of several addresses the one that answers is taken") {
  boost::asio::io_context loop{1};
  Host host;
  host.server = serve(loop, listen_at("127.0.0.1"), channel_settings(), {}, host);
  Caller caller;
  caller.channel = dial(loop, {"localhost", host.server->endpoints()[0].port}, channel_settings(), caller);
  turn_until(loop, [&] { return caller.open; });
}

TEST_CASE("IPv6 works as IPv4 does") {
  if (!listen_at("::1")) return;  // a kernel without it
  Rendezvous rendezvous(channel_settings(), channel_settings(), "::1");
  rendezvous.open();
  CHECK(rendezvous.caller.channel->peer().starts_with("[::1]:"));
}

TEST_CASE("a side that takes no messages is given up, and holds no more memory than that") {
  ChannelSettings small = channel_settings();
  small.max_unsent_bytes = 1'000'000;
  Rendezvous rendezvous(channel_settings(), small);
  rendezvous.open();
  const std::string message(100'000, 'x');
  // Within one turn of the loop nobody reads.
  for (int i = 0; i < 11; ++i) rendezvous.caller.channel->send(message);
  rendezvous.until([&] { return rendezvous.caller.closed.has_value(); });
  CHECK(rendezvous.caller.closed->end == ChannelEnd::broken);
  CHECK(rendezvous.caller.closed->why.find(" does not accept messages: 1") != std::string::npos);
}

TEST_CASE("a message that is longer than allowed breaks the connection") {
  ChannelSettings small = channel_settings();
  small.max_message_bytes = 1000;
  Rendezvous rendezvous(small);
  rendezvous.open();
  rendezvous.caller.channel->send(std::string(1001, 'x'));
  rendezvous.until([&] { return !rendezvous.host.closed.empty() && rendezvous.caller.closed.has_value(); });
  CHECK(rendezvous.host.closed[0].second.end == ChannelEnd::broken);
  CHECK(rendezvous.host.closed[0].second.why.find("a message of 1001 bytes") != std::string::npos);
}

TEST_CASE("what goes to many arrives in its place, sealed and with --insecure") {
  const auto list = std::make_shared<const std::string>(std::string(500'000, 'l'));
  ChannelSettings insecure = channel_settings();
  insecure.secret.reset();
  for (const ChannelSettings& settings : {channel_settings(), insecure}) {
    Rendezvous rendezvous(settings, settings);
    rendezvous.open();
    const ConnectionId caller = rendezvous.host.opened[0];
    rendezvous.host.server->send(caller, "before");
    rendezvous.host.server->send(caller, list);
    rendezvous.host.server->send(caller, "after");
    rendezvous.until([&] { return rendezvous.caller.messages.size() == 3; });
    CHECK(rendezvous.caller.messages == std::vector<std::string>{"before", *list, "after"});
  }
}

TEST_CASE("tampering at any byte of a session: messages arrive as they were sent, or the connection breaks") {
  struct Server {
    boost::asio::io_context loop{1};
    Host host;
    Server() {
      ChannelSettings hasty = channel_settings();
      hasty.handshake_timeout = 500ms;
      host.echoes = true;
      host.server = serve(loop, listen_at("127.0.0.1"), hasty, {}, host);
    }
    std::string endpoint() const { return to_string(host.server->endpoints()[0]); }
  };
  tests::tamper_everywhere(
      [] { return std::make_unique<Server>(); },
      [](Server& server, const std::string& endpoint) {
        const std::vector<std::string> all{"the first message", "", std::string(200, 'x')};
        const auto is_beginning = [&](const std::vector<std::string>& heard) {
          return heard.size() <= all.size() && std::equal(heard.begin(), heard.end(), all.begin());
        };
        ChannelSettings hasty = channel_settings();
        hasty.handshake_timeout = 500ms;
        Caller caller;
        const auto port = static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
        caller.channel = dial(server.loop, {"127.0.0.1", port}, hasty, caller);
        turn_until(server.loop, [&] { return caller.open || caller.closed; });
        for (const std::string& message : all) caller.channel->send(message);
        // Of what does not come, and is not refused, only the end is heard.
        const auto until = std::chrono::steady_clock::now() + 500ms;
        turn_until(server.loop, [&] {
          return caller.messages.size() == all.size() || caller.closed ||
                 std::chrono::steady_clock::now() > until;
        });
        std::vector<std::string> there;
        for (const auto& [id, message] : server.host.messages) there.push_back(message);
        CHECK(is_beginning(there));
        CHECK(is_beginning(caller.messages));
      });
}
