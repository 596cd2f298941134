// Strangers at a port, and members who announce more than they send: T3, T11, T12, T13.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "collective/cpu/rank_links.h"
#include "runtime/base/error.h"
#include "runtime/base/frames.h"
#include "runtime/base/version.h"
#include "runtime/connect/authenticating_acceptor.h"
#include "runtime/secure/handshake.h"
#include "tests/attack/attack.h"
#include "tests/support/sealed_ends.h"

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
    ways.push_back({std::move(listener.socket), "cluster", false, [this](SealedSocket came) {
                      ++admitted;  // before the other end hears that this one is closed
                      came.take_plain(early);
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

/// Two ranks that have proved a secret to each other, or have none, and the wire between them: what the first
/// one sends can be read at `wire`, and what is written to `to_second` reaches the second one.
struct Ranks {
  std::array<UniqueFd, 2> out = tests::socket_pair(), in = tests::socket_pair();
  UniqueFd &wire = out[1], &to_second = in[0];
  std::optional<collective::RankLinks> first, second;

  explicit Ranks(const std::optional<Secret>& secret) {
    HandshakeSettings settings;
    settings.secret = secret;
    Handshake one(settings);
    settings.side = Side::server;
    Handshake other(settings);
    for (int round = 0; round < 4; ++round) {
      pass_on(one, other);
      pass_on(other, one);
    }
    std::vector<SealedSocket> of_first(2), of_second(2);
    of_first[1] = SealedSocket(std::move(out[0]), one.take_records());
    of_second[0] = SealedSocket(std::move(in[1]), other.take_records());
    first.emplace(collective::Place{"links", 0, 2}, std::move(of_first));
    second.emplace(collective::Place{"links", 1, 2}, std::move(of_second));
  }
  static void pass_on(Handshake& from, Handshake& to) {
    const std::string bytes = from.output();
    for (std::string_view rest = bytes; !rest.empty();) rest.remove_prefix(to.receive(rest));
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
    FrameReader reader(1024);
    reader.receive(std::string_view("\0\0\0\x40", 4));
    return goes_through([&] { reader.next(); });
  });
}

TEST_CASE("T13: a header that nobody has proven is believed") {
  stopped_only_by("sealed records", [] {
    Ranks ranks(Secret::random());
    const std::array<std::uint64_t, 4> forged{99, 1 << 20, 1, 2};
    say(ranks.to_second, {reinterpret_cast<const char*>(forged.data()), sizeof forged});
    collective::Completions received;
    std::array<char, 8> into{};
    ranks.second->receive(0, 10, into.data(), into.size(), received);
    return goes_through([&] { ranks.second->progress(collective::RankLinks::Clock::now() + kSoon); });
  });
}

TEST_CASE("T13: a length takes memory before its bytes come") {
  stopped_only_by("memory as bytes come", [] {
    Ranks ranks(std::nullopt);
    const std::array<std::uint64_t, 3> announced{99, std::uint64_t{1} << 28, 1};
    say(ranks.to_second, {reinterpret_cast<const char*>(announced.data()), sizeof announced});
    collective::Completions received;
    std::array<char, 8> into{};
    ranks.second->receive(0, 10, into.data(), into.size(), received);
    const std::uint64_t before = mapped_bytes();
    REQUIRE(goes_through([&] { ranks.second->progress(collective::RankLinks::Clock::now() + kSoon); }));
    return mapped_bytes() - before > (std::uint64_t{1} << 27);
  });
}

TEST_CASE("T4: what one rank sends another is changed on the way") {
  stopped_only_by("sealed records", [] {
    Ranks ranks(Secret::random());
    collective::Completions sent, received;
    std::array<char, 8> value{"grad 11"}, into{};
    ranks.first->send(1, 10, value.data(), value.size(), sent);
    std::string bytes = hear(ranks.wire);
    bytes[bytes.size() - 3] = '9';
    say(ranks.to_second, bytes);
    ranks.to_second.reset();
    ranks.second->receive(0, 10, into.data(), into.size(), received);
    return goes_through([&] {
      while (received.receives == 0) ranks.second->progress(collective::RankLinks::Clock::now() + kSoon);
    });
  });
}

TEST_CASE("T4: what one rank sends another can be read on the way") {
  stopped_only_by("sealed records", [] {
    Ranks ranks(Secret::random());
    collective::Completions sent;
    ranks.first->send(1, 10, "gradient", 8, sent);
    return hear(ranks.wire).find("gradient") != std::string::npos;
  });
}

TEST_CASE("T12: who passes the proof on between a trainer and its server speaks to gRPC") {
  stopped_only_by("records under the handshake's key", [] {
    Service service;
    const UniqueFd socket = connect_to("127.0.0.1", service.endpoint);
    Handshake member = service.client();
    // The member, far away, answers; who sits between them has the connection.
    std::string_view rest;
    std::string answer;
    say(socket, member.output());
    answer = hear(socket);
    for (rest = answer; !rest.empty();) rest.remove_prefix(member.receive(rest));
    const std::string proof = member.output().substr(0, 34);
    say(socket, proof);
    RecordLayer own(Side::client, std::string(32, '?'));
    return goes_through([&] {
             for (answer.clear(); !own.established(); answer = hear(socket)) {
               rest = answer;
               std::string out;
               own.establish(rest, out);
               say(socket, out);
               if (answer.empty() && out.empty()) throw Error(ErrorKind::network, "it hung up");
             }
           }) &&
           service.has_admitted(socket);
  });
}
