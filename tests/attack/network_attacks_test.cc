// Strangers at a port, and members who announce more than they send: T3, T11, T12, T13.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "collective/cpu/rank_links.h"
#include "runtime/base/error.h"
#include "runtime/base/version.h"
#include "runtime/connect/authenticating_acceptor.h"
#include "runtime/secure/sealed_frames.h"
#include "tests/attack/attack.h"

using namespace fleetrun;
using fleetrun::tests::goes_through;
using fleetrun::tests::stopped_only_by;
using namespace std::chrono_literals;

namespace {

constexpr int kPlaces = 512;  // for those who have not proven anything
constexpr auto kSoon = 10s;

UniqueFd connect_to(const std::string& address, const std::string& endpoint) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
  REQUIRE(::inet_pton(AF_INET, address.c_str(), &place.sin_addr) == 1);
  if (::connect(socket.value(), reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0) return {};
  return socket;
}

void say(const UniqueFd& socket, std::string_view bytes) {
  static_cast<void>(!::send(socket.value(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

/// What comes next; empty: nothing comes any more.
std::string hear(const UniqueFd& socket) {
  std::array<char, 1024> block;
  const ssize_t count = ::recv(socket.value(), block.data(), block.size(), 0);
  return count > 0 ? std::string(block.data(), static_cast<std::size_t>(count)) : "";
}

/// Something that serves whoever is let in.
struct Service {
  Access access{Secret::random(), "/job/secret"};
  Rejections rejections{"a server"};
  std::atomic<int> admitted = 0;
  std::string early;  // of the last one who was
  Listener listener = listen_at("127.0.0.1:0", false, "a server");
  std::string endpoint = listener.endpoint;
  std::unique_ptr<AuthenticatingAcceptor> acceptor;

  Service() {
    std::vector<AuthListener> ways;
    ways.push_back({std::move(listener.socket), "cluster", false, [this](AcceptedConnection came) {
                      early = came.early;
                      ++admitted;
                    }});
    acceptor = std::make_unique<AuthenticatingAcceptor>(std::move(ways), access, rejections);
  }
  Handshake client() const {
    HandshakeSettings settings;
    settings.side = Side::client;
    settings.secret = access.secret;
    settings.purpose = "cluster";
    settings.version = FLEETRUN_VERSION;
    settings.peer = "the server";
    return Handshake(std::move(settings));
  }
  /// Whether the member that was answered so is let in.
  bool lets_in(const UniqueFd& socket, Handshake& member, std::string answer) const {
    for (; !answer.empty(); answer = hear(socket)) {
      member.receive(answer);
      say(socket, member.output());
      if (member.finished()) return has_admitted(socket);
    }
    return false;
  }
  /// Either way the connection ends: who is let in is served nothing here.
  bool has_admitted(const UniqueFd& socket) const {
    REQUIRE(hear(socket).empty());
    return admitted == 1;
  }
  /// Strangers who say nothing.
  std::vector<UniqueFd> crowd(int count) const {
    std::vector<UniqueFd> all;
    for (int i = 0; i < count; ++i) all.push_back(connect_to("127.0.0.1", endpoint));
    return all;
  }
};

/// What this process has mapped for data, whether it was touched or not.
std::uint64_t mapped_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmData:")) return std::stoull(line.substr(7)) << 10;
  FAIL("no VmData");
  return 0;
}

/// The end of a link between two ranks, into which the test writes, and the rank at the other one.
struct Rank {
  UniqueFd writes;
  SessionKeys keys;
  std::unique_ptr<collective::RankLinks> links;

  explicit Rank(bool has_codes) {
    std::array<int, 2> ends;
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    writes.reset(ends[0]);
    keys.to_peer.fill(1);
    keys.from_peer.fill(2);
    std::vector<Proven> mesh(2);
    mesh[0] = {UniqueFd(ends[1]), keys};
    links =
        std::make_unique<collective::RankLinks>(collective::Place{"links", 1, 2}, std::move(mesh), has_codes);
  }
};

}  // namespace

TEST_CASE("T3: a server is met at an address that it was not given") {
  stopped_only_by("one address", [] {
    const Listener listener = listen_at("127.0.0.1:0", false, "a server");
    return bool(connect_to("127.0.0.2", listener.endpoint));
  });
}

TEST_CASE("T11: strangers take all places, and a member finds none") {
  stopped_only_by("strangers give way", [] {
    Service service;
    const std::vector<UniqueFd> strangers = service.crowd(kPlaces);
    const UniqueFd socket = connect_to("127.0.0.1", service.endpoint);
    Handshake member = service.client();
    say(socket, member.output());
    return !service.lets_in(socket, member, hear(socket));
  });
}

TEST_CASE("T11: a member in the middle of its proof loses its place to strangers") {
  stopped_only_by("a place for proofs", [] {
    Service service;
    const UniqueFd socket = connect_to("127.0.0.1", service.endpoint);
    Handshake member = service.client();
    say(socket, member.output());
    const std::string answer = hear(socket);
    const std::vector<UniqueFd> strangers = service.crowd(kPlaces + 8);
    // One of the eight who came too many has been pushed out, or the member was.
    std::vector<pollfd> watched{{socket.value(), POLLIN, 0}};
    for (const UniqueFd& stranger : strangers) watched.push_back({stranger.value(), POLLIN, 0});
    REQUIRE(::poll(watched.data(), watched.size(), 10'000) > 0);
    return !service.lets_in(socket, member, answer);
  });
}

TEST_CASE("T12: a stranger's first words reach gRPC") {
  stopped_only_by("proof before the protocol", [] {
    Service service;
    const UniqueFd socket = connect_to("127.0.0.1", service.endpoint);
    say(socket, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    return service.has_admitted(socket) && service.early.starts_with("PRI");
  });
}

TEST_CASE("T13: a frame announces more than may be sent, and is waited for") {
  stopped_only_by("longest message", [] {
    FrameOpener opener(Digest{}, 1024);
    opener.receive(std::string_view("\0\0\0\x40", 4));
    return goes_through([&] { opener.next(); });
  });
}

TEST_CASE("T13: a header that nobody has proven is believed") {
  stopped_only_by("proven headers", [] {
    Rank rank(true);
    const std::array<std::uint64_t, 4> forged{99, 1 << 20, 1, 2};
    say(rank.writes, {reinterpret_cast<const char*>(forged.data()), sizeof forged});
    collective::Completions received;
    std::array<char, 8> into{};
    rank.links->receive(0, 10, into.data(), into.size(), received);
    return goes_through([&] { rank.links->progress(collective::RankLinks::Clock::now() + kSoon); });
  });
}

TEST_CASE("T13: a length takes memory before its bytes come") {
  stopped_only_by("memory as bytes come", [] {
    Rank rank(false);
    const std::array<std::uint64_t, 3> announced{99, std::uint64_t{1} << 28, 1};
    say(rank.writes, {reinterpret_cast<const char*>(announced.data()), sizeof announced});
    collective::Completions received;
    std::array<char, 8> into{};
    rank.links->receive(0, 10, into.data(), into.size(), received);
    const std::uint64_t before = mapped_bytes();
    REQUIRE(goes_through([&] { rank.links->progress(collective::RankLinks::Clock::now() + kSoon); }));
    return mapped_bytes() - before > (std::uint64_t{1} << 27);
  });
}

TEST_CASE("T4: what one rank sends another is changed on the way") {
  stopped_only_by("sealed messages of ranks", [] {
    Rank rank(true);
    // A rank's own message, as the other one would send it, and one bit of its payload.
    std::array<int, 2> ends;
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    std::vector<Proven> mesh(2);
    SessionKeys mirrored;
    mirrored.to_peer = rank.keys.from_peer;
    mirrored.from_peer = rank.keys.to_peer;
    mesh[1] = {UniqueFd(ends[0]), mirrored};
    const UniqueFd wire(ends[1]);
    collective::RankLinks sender({"links", 0, 2}, std::move(mesh), true);
    collective::Completions sent, received;
    std::array<char, 8> value{"grad 11"}, into{};
    sender.send(1, 10, value.data(), value.size(), sent);
    std::array<char, 16 + 16 + 8 + 16> bytes{};
    REQUIRE(::recv(wire.value(), bytes.data(), bytes.size(), MSG_WAITALL) == sizeof bytes);
    bytes[16 + 16 + 5] = '9';
    say(rank.writes, {bytes.data(), bytes.size()});
    rank.links->receive(0, 10, into.data(), into.size(), received);
    return goes_through([&] {
      while (received.receives == 0) rank.links->progress(collective::RankLinks::Clock::now() + kSoon);
    });
  });
}
