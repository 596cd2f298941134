#include "launcher/cluster/channel_server.h"

#include <sys/resource.h>

#include "runtime/base/frames.h"
#include "runtime/secure/handshake.h"
#include "tests/support/cluster_loop.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using namespace fleetrun::tests;
using namespace std::chrono_literals;

namespace {

struct Place {
  boost::asio::io_context loop{1};
  Host host;

  explicit Place(const ChannelSettings& settings = channel_settings(), const ChannelLimits& limits = {}) {
    host.server = serve(loop, listen_at("127.0.0.1"), settings, limits, host);
  }
  template <class Done>
  void until(Done done) {
    turn_until(loop, done);
  }
  Stranger stranger() const { return Stranger(host.server->endpoints()[0]); }
  /// Four launchers come and say something; how long that took.
  std::chrono::milliseconds four_meet() {
    const auto start = std::chrono::steady_clock::now();
    Caller callers[4];
    for (Caller& caller : callers)
      caller.channel = dial(loop, host.server->endpoints()[0], channel_settings(), caller);
    until([&] { return callers[0].open && callers[1].open && callers[2].open && callers[3].open; });
    for (Caller& caller : callers) caller.channel->send("here");
    const std::size_t before = host.messages.size();
    until([&] { return host.messages.size() >= before + 4; });
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  }
};

/// The client's side of a handshake by hand.
Handshake client_handshake(std::string_view secret = "0123456789abcdefghijklmnopqrstuv") {
  HandshakeSettings settings;
  settings.secret = Secret::from_bytes(secret);
  settings.purpose = "cluster";
  settings.version = "1.2.3";
  settings.peer = "the server";
  return Handshake(settings);
}

std::string framed(std::string_view body) {
  std::string bytes;
  append_frame(body, bytes);
  return bytes;
}

std::string sealed(std::optional<RecordLayer>& records, std::string_view plain) {
  std::string bytes;
  records->seal(std::as_bytes(std::span(plain)), bytes);
  return bytes;
}

/// Until it is finished: the channel is then open.
void shake_hands(Place& place, Stranger& stranger, Handshake& handshake) {
  stranger.say(handshake.output());
  std::size_t taken = 0;
  place.until([&] {
    const std::string_view fresh = std::string_view(stranger.heard()).substr(taken);
    if (!fresh.empty() && !handshake.finished()) taken += handshake.receive(fresh);
    stranger.say(handshake.output());
    return handshake.finished();
  });
  const std::size_t before = place.host.opened.size();
  place.until([&] { return place.host.opened.size() > before; });
}

/// Descriptors of this process, limited for one test.
class FewDescriptors {
 public:
  explicit FewDescriptors(int spare) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const UniqueFd next(::dup(0));
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(next.value() + spare);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_ = {};
};

}  // namespace

TEST_CASE("it listens at just the address it was given") {
  boost::asio::io_context loop{1};
  Host host;
  host.server = serve(loop, listen_at("127.0.0.2"), channel_settings(), {}, host);
  CHECK(host.server->endpoints()[0].host == "127.0.0.2");
  const std::uint16_t port = host.server->endpoints()[0].port;
  const UniqueFd beside = listen_at("127.0.0.1", port);
  CHECK(beside);
  CHECK_FALSE(listen_at("127.0.0.2", port));
  CHECK(errno == EADDRINUSE);
  CHECK_FALSE(listening_socket(numeric_address({"192.0.2.1", 0}).value()));
  CHECK(errno == EADDRNOTAVAIL);
}

TEST_CASE(
    "web browsers, TLS, other protocols and noise are closed without a word, counted, and told of rarely") {
  Place place;
  const std::string noise[] = {"GET / HTTP/1.1\r\n\r\n", std::string("\x16\x03\x01\x02\x00\x01\x00", 7),
                               "SSH-2.0-x\r\n",          std::string(200'000, 'z'),
                               std::string(64, '\0'),    "FLEETRUN?"};
  std::vector<Stranger> strangers;
  for (const std::string& bytes : noise) strangers.emplace_back(place.host.server->endpoints()[0]).say(bytes);
  // The last one could still become a fleetrun; nothing follows.
  for (std::size_t i = 0; i + 1 < strangers.size(); ++i) {
    place.until([&] { return strangers[i].is_cut_off(); });
    CHECK(strangers[i].heard().empty());
  }
  place.until([&] { return place.host.turned_away() == 5; });
  CHECK(place.host.strangers.size() <= 2);  // within a second and what follows it
  CHECK(place.host.opened.empty());
}

TEST_CASE("whoever does not prove itself in time is cut off") {
  ChannelSettings hasty = channel_settings();
  hasty.handshake_timeout = 100ms;
  Place place(hasty);
  Stranger silent = place.stranger(), slow = place.stranger(), half = place.stranger();
  half.say(client_handshake().output());
  const std::string opening = client_handshake().output();
  std::size_t said = 0;
  place.until([&] {
    if (said < 5 && said < opening.size())
      slow.say(opening.substr(said++, 1));  // one byte at a time: slow loris
    return silent.is_cut_off() && slow.is_cut_off() && half.is_cut_off();
  });
  CHECK(half.heard().size() > 34);  // it was answered, and did not answer
  CHECK(slow.heard().empty());
}

TEST_CASE("a length of a gigabyte, before or after the handshake, takes no memory") {
  Place place;
  Stranger early = place.stranger(), late = place.stranger();
  const std::string length("\0\0\0\x40", 4);
  early.say(length);
  Handshake handshake = client_handshake();
  shake_hands(place, late, handshake);
  auto records = handshake.take_records();
  late.say(sealed(records, length));
  place.until([&] { return early.is_cut_off() && late.is_cut_off(); });
  REQUIRE(place.host.closed.size() == 1);
  CHECK(place.host.closed[0].second.why.find("a message of 1073741824 bytes") != std::string::npos);
}

TEST_CASE("a message of which one bit is changed is not delivered") {
  Place place;
  Stranger stranger = place.stranger();
  Handshake handshake = client_handshake();
  shake_hands(place, stranger, handshake);
  auto records = handshake.take_records();
  std::string bytes = sealed(records, framed("a good one"));
  bytes += sealed(records, framed("a bad one"));
  bytes[bytes.size() - 20] = static_cast<char>(bytes[bytes.size() - 20] ^ 1);
  stranger.say(bytes);
  place.until([&] { return !place.host.closed.empty(); });
  REQUIRE(place.host.messages.size() == 1);
  CHECK(place.host.messages[0].second == "a good one");
  CHECK(place.host.closed[0].second.end == ChannelEnd::broken);
}

TEST_CASE("a connection that is recorded and played again opens nothing") {
  Place place;
  Stranger first = place.stranger();
  Handshake handshake = client_handshake();
  std::string recorded = handshake.output();
  first.say(recorded);
  std::string rest;
  std::size_t taken = 0;
  place.until([&] {
    const std::string_view fresh = std::string_view(first.heard()).substr(taken);
    if (!fresh.empty()) taken += handshake.receive(fresh);
    const std::string answer = handshake.output();
    first.say(answer);
    rest += answer;
    return handshake.finished();
  });
  auto records = handshake.take_records();
  const std::string order = sealed(records, framed("transfer everything"));
  first.say(order);
  rest += order;
  place.until([&] { return place.host.messages.size() == 1; });
  Stranger again = place.stranger();
  again.say(recorded + rest);
  place.until([&] { return again.is_cut_off(); });
  CHECK(place.host.messages.size() == 1);
  CHECK(place.host.opened.size() == 1);
}

TEST_CASE("an end within a message, a reset and a goodbye are told apart") {
  Place place;
  std::optional<Stranger> within(place.host.server->endpoints()[0]), reset(place.host.server->endpoints()[0]);
  Handshake one = client_handshake(), two = client_handshake();
  shake_hands(place, *within, one);
  shake_hands(place, *reset, two);
  within->say("\x05");
  ::shutdown(within->fd(), SHUT_WR);
  place.until([&] { return place.host.closed.size() == 1; });
  CHECK(place.host.closed[0].second.end == ChannelEnd::broken);
  const linger hard = {1, 0};
  ::setsockopt(reset->fd(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  reset.reset();
  place.until([&] { return place.host.closed.size() == 2; });
  CHECK(place.host.closed[1].second.end == ChannelEnd::broken);
  CHECK(place.host.closed[1].second.why.find("Connection reset by peer") != std::string::npos);
}

TEST_CASE("when there are too many strangers, the silent go before those who have spoken") {
  ChannelLimits limits;
  limits.unproven = 4;
  Place place(channel_settings(), limits);
  Stranger spoke = place.stranger(), silent = place.stranger(), third = place.stranger(),
           fourth = place.stranger();
  spoke.say("FLEET");
  place.until([&] { return place.host.turned_away() == 0 && place.loop.poll() == 0; });
  Stranger fifth = place.stranger();
  place.until([&] { return silent.is_cut_off(); });
  CHECK_FALSE(spoke.is_cut_off());
  CHECK_FALSE(third.is_cut_off());
  CHECK_FALSE(fourth.is_cut_off());
  CHECK_FALSE(fifth.is_cut_off());
}

TEST_CASE("2,000 connections that say nothing do not keep four launchers from meeting") {
  rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const rlimit before = files;
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 8192);
  ::setrlimit(RLIMIT_NOFILE, &files);
  {
    Place place;
    const std::string opening = client_handshake().output();
    std::vector<Stranger> idle;
    for (int i = 0; i < 2000; ++i) {
      idle.emplace_back(place.host.server->endpoints()[0]);
      if (i % 2) idle.back().say(opening);  // and half of them begin as a launcher does
      place.loop.poll();
      place.loop.restart();
    }
    CHECK(place.four_meet() < channel_settings().handshake_timeout);  // nobody waits for a stranger's
    std::size_t alive = 0;
    for (Stranger& stranger : idle) alive += !stranger.is_cut_off();
    CHECK(alive <= 1024);
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_CASE("with no descriptor left accepting pauses, and goes on when there are some again") {
  Place place;
  Caller old;
  old.channel = dial(place.loop, place.host.server->endpoints()[0], channel_settings(), old);
  place.until([&] { return old.open && place.host.opened.size() == 1; });
  {
    const FewDescriptors few(1);
    Stranger waiting = place.stranger();  // takes the last one
    place.until([&] { return waiting.is_cut_off(); });
    CHECK(place.host.turned_away() >= 1);
    old.channel->send("still here");  // those that are there are served
    place.until([&] { return place.host.messages.size() == 1; });
  }
  place.four_meet();
}
