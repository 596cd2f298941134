#include "launcher/cluster/channel.h"

#include "runtime/secure/handshake.h"
#include "runtime/secure/tls_session.h"
#include "tests/support/cluster_loop.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace fleetrun::tests;
using namespace std::chrono_literals;

namespace {

struct Meeting {
  boost::asio::io_context loop{1};
  Host host;
  Caller caller;

  explicit Meeting(const ChannelSettings& server = channel_settings(),
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
  Meeting meeting;
  meeting.open();
  const std::string large(3'000'000, 'x');
  meeting.caller.channel->send("one");
  meeting.caller.channel->send("");
  meeting.caller.channel->send(large);
  meeting.until([&] { return meeting.host.messages.size() == 3; });
  CHECK(meeting.host.messages[0].second == "one");
  CHECK(meeting.host.messages[1].second == "");
  CHECK(meeting.host.messages[2].second == large);
  meeting.host.server->send(meeting.host.opened[0], large + "!");
  meeting.until([&] { return !meeting.caller.messages.empty(); });
  CHECK(meeting.caller.messages[0] == large + "!");
  CHECK(meeting.caller.channel->peer() == to_string(meeting.host.server->endpoints()[0]));
  CHECK(meeting.caller.channel->own_address().starts_with("127.0.0.1:"));
}

TEST_CASE("what was sent before a goodbye arrives, and the goodbye is told from a broken connection") {
  Meeting meeting;
  meeting.open();
  const std::string large(5'000'000, 'x');
  meeting.caller.channel->send(large);
  meeting.caller.channel->close();
  meeting.caller.channel.reset();  // the rest is sent in the background
  meeting.until([&] { return !meeting.host.closed.empty(); });
  REQUIRE(meeting.host.messages.size() == 1);
  CHECK(meeting.host.messages[0].second == large);
  CHECK(meeting.host.closed[0].second.end == ChannelEnd::goodbye);
  CHECK_FALSE(meeting.caller.closed);
}

TEST_CASE("a server closes a connection after what it has sent there") {
  Meeting meeting;
  meeting.open();
  meeting.host.server->send(meeting.host.opened[0], "the end");
  meeting.host.server->close(meeting.host.opened[0]);
  meeting.until([&] { return meeting.caller.closed.has_value(); });
  CHECK(meeting.caller.messages == std::vector<std::string>{"the end"});
  CHECK(meeting.caller.closed->end == ChannelEnd::goodbye);
  CHECK(meeting.host.closed.empty());
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
  Meeting meeting(channel_settings(), other);
  meeting.until([&] { return meeting.caller.closed && !meeting.host.refused.empty(); });
  CHECK(meeting.caller.closed->end == ChannelEnd::refused);
  CHECK(meeting.caller.closed->why == to_string(meeting.host.server->endpoints()[0]) +
                                          " has another secret than this host (/users/you/secret)");
  CHECK(meeting.caller.closed->hint.find("--secret-file") != std::string::npos);
  CHECK(meeting.host.refused[0].why.find(" has another secret than this host (/users/me/secret)") !=
        std::string::npos);
  CHECK(meeting.host.opened.empty());
}

TEST_CASE("another version and --insecure on one side are refused in words") {
  ChannelSettings insecure = channel_settings();
  insecure.secret.reset();
  Meeting meeting(insecure);
  meeting.until([&] { return meeting.caller.closed && !meeting.host.refused.empty(); });
  CHECK(meeting.caller.closed->end == ChannelEnd::refused);
  CHECK(meeting.caller.closed->why.find("runs with --insecure") != std::string::npos);
  CHECK(meeting.host.refused[0].why.find("runs without --insecure") != std::string::npos);
  Meeting both(insecure, insecure);
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
  Meeting meeting(channel_settings(), channel_settings(), "::1");
  meeting.open();
  CHECK(meeting.caller.channel->peer().starts_with("[::1]:"));
}

TEST_CASE("a side that takes no messages is given up, and holds no more memory than that") {
  ChannelSettings small = channel_settings();
  small.most_unsent_bytes = 1'000'000;
  Meeting meeting(channel_settings(), small);
  meeting.open();
  const std::string message(100'000, 'x');
  // Within one turn of the loop nobody reads.
  for (int i = 0; i < 11; ++i) meeting.caller.channel->send(message);
  meeting.until([&] { return meeting.caller.closed.has_value(); });
  CHECK(meeting.caller.closed->end == ChannelEnd::broken);
  CHECK(meeting.caller.closed->why.find(" does not accept messages: 1") != std::string::npos);
}

TEST_CASE("a message that is longer than allowed breaks the connection") {
  ChannelSettings small = channel_settings();
  small.most_message_bytes = 1000;
  Meeting meeting(small);
  meeting.open();
  meeting.caller.channel->send(std::string(1001, 'x'));
  meeting.until([&] { return !meeting.host.closed.empty() && meeting.caller.closed.has_value(); });
  CHECK(meeting.host.closed[0].second.end == ChannelEnd::broken);
  CHECK(meeting.host.closed[0].second.why.find("a message of 1001 bytes") != std::string::npos);
}

TEST_CASE("with TLS launchers talk as they do without, and nobody reads along") {
  ChannelSettings tls = channel_settings();
  tls.tls = TlsIdentity::make(tls.secret);
  Meeting meeting(tls, tls);
  meeting.open();
  const std::string large(1'000'000, 'x');
  meeting.caller.channel->send("one");
  meeting.caller.channel->send(large);
  meeting.until([&] { return meeting.host.messages.size() == 2; });
  CHECK(meeting.host.messages[1].second == large);
  meeting.host.server->send(meeting.host.opened[0], large);
  meeting.host.server->close(meeting.host.opened[0]);
  meeting.until([&] { return meeting.caller.closed.has_value(); });
  CHECK(meeting.caller.messages == std::vector<std::string>{large});
  CHECK(meeting.caller.closed->end == ChannelEnd::goodbye);
}

TEST_CASE("what goes to many is sent without a copy, with TLS and without") {
  const auto list = std::make_shared<const std::string>(std::string(500'000, 'l'));
  ChannelSettings tls = channel_settings();
  tls.tls = TlsIdentity::make(tls.secret);
  for (const ChannelSettings& settings : {channel_settings(), tls}) {
    Meeting meeting(settings, settings);
    meeting.open();
    const ConnectionId caller = meeting.host.opened[0];
    meeting.host.server->send(caller, "before");
    meeting.host.server->send(caller, list);
    meeting.host.server->send(caller, "after");
    meeting.until([&] { return meeting.caller.messages.size() == 3; });
    CHECK(meeting.caller.messages == std::vector<std::string>{"before", *list, "after"});
  }
}

TEST_CASE("TLS on one side only, or with another secret, is refused in words on both") {
  ChannelSettings tls = channel_settings(), other = channel_settings("another secret of just 32 bytes!");
  tls.tls = TlsIdentity::make(tls.secret);
  other.tls = TlsIdentity::make(other.secret);
  Meeting one(tls, channel_settings());
  one.until([&] { return one.caller.closed && !one.host.refused.empty(); });
  CHECK(one.caller.closed->why.find("runs with --tls, and this host without it") != std::string::npos);
  CHECK(one.host.refused[0].why.find("runs without --tls, and this host with it") != std::string::npos);
  Meeting two(tls, other);
  two.until([&] { return two.caller.closed && !two.host.refused.empty(); });
  CHECK(two.caller.closed->why.find("has another secret than this host") != std::string::npos);
  CHECK(two.host.refused[0].why.find("has another secret than this host") != std::string::npos);
}
