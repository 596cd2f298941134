#include "runtime/secure/handshake.h"

#include <doctest/doctest.h>

#include <array>
#include <functional>

#include "runtime/base/error.h"

using namespace fleetrun;

namespace {

const Secret kSecret = Secret::from_bytes("0123456789abcdefghijklmnopqrstuv");

HandshakeSettings settings(Side side) {
  HandshakeSettings settings;
  settings.side = side;
  settings.secret = kSecret;
  settings.secret_source = side == Side::client ? "/users/c/secret" : "/users/s/secret";
  settings.purpose = "cluster";
  settings.version = "1.2.3";
  settings.peer = side == Side::client ? "10.0.0.1:7777" : "10.0.0.2:4711";
  return settings;
}

/// What an end said at last: "" while all is well, else "what | hint".
struct End {
  Handshake handshake;
  std::string failure, frames;
  bool config = false;

  explicit End(HandshakeSettings settings) : handshake(std::move(settings)) {}

  void take(std::string_view bytes, std::size_t piece) {
    while (!bytes.empty() && failure.empty()) {
      if (handshake.finished()) {
        frames += bytes;
        return;
      }
      try {
        bytes.remove_prefix(handshake.receive(bytes.substr(0, piece)));
      } catch (const Error& error) {
        failure = std::string(error.what()) + (error.hint().empty() ? "" : " | " + error.hint());
        config = error.kind() == ErrorKind::config;
      }
    }
  }
};

using Middle = std::function<std::string(std::string bytes, bool to_server)>;

struct Exchange {
  End client, server;

  Exchange(HandshakeSettings client_settings, HandshakeSettings server_settings)
      : client(std::move(client_settings)), server(std::move(server_settings)) {}

  /// Until nobody says anything any more. Who failed says its last words, and hears nothing more.
  Exchange& run(std::size_t piece = 1000, const Middle& middle = nullptr) {
    for (int rounds = 0; rounds < 10; ++rounds) {
      std::string to_server = client.handshake.output();
      if (middle) to_server = middle(std::move(to_server), true);
      server.take(to_server, piece);
      std::string to_client = server.handshake.output();
      if (middle) to_client = middle(std::move(to_client), false);
      client.take(to_client, piece);
    }
    return *this;
  }
  bool both_finished() const { return client.handshake.finished() && server.handshake.finished(); }
  bool neither_finished() const { return !client.handshake.finished() && !server.handshake.finished(); }
};

Exchange meet(const std::function<void(HandshakeSettings&)>& change_client,
              const std::function<void(HandshakeSettings&)>& change_server = nullptr) {
  HandshakeSettings client = settings(Side::client), server = settings(Side::server);
  if (change_client) change_client(client);
  if (change_server) change_server(server);
  Exchange exchange(std::move(client), std::move(server));
  exchange.run();
  return exchange;
}

/// What the server hears when the client says something after the handshake, and how it looks on the way.
std::pair<std::string, std::string> say(Exchange& exchange, std::string_view text) {
  auto client = exchange.client.handshake.take_records(), server = exchange.server.handshake.take_records();
  REQUIRE(client);
  REQUIRE(server);
  std::string wire;
  client->seal(std::as_bytes(std::span(text)), wire);
  std::array<std::byte, 100> into;
  std::string_view bytes = wire;
  const std::size_t count = server->open(bytes, into);
  return {std::string(reinterpret_cast<const char*>(into.data()), count), wire};
}

}  // namespace

TEST_CASE("two ends with one secret seal what follows, however the bytes are cut") {
  for (const std::size_t piece : {1, 2, 3, 7, 50, 1000}) {
    Exchange exchange(settings(Side::client), settings(Side::server));
    exchange.run(piece);
    REQUIRE(exchange.both_finished());
    CHECK(say(exchange, "to the server").first == "to the server");
  }
}

TEST_CASE("who passes the proofs on from one end to the other cannot speak afterwards, nor read along") {
  Exchange exchange(settings(Side::client), settings(Side::server)),
      another(settings(Side::client), settings(Side::server));
  REQUIRE(exchange.run().both_finished());
  REQUIRE(another.run().both_finished());
  const auto [heard, wire] = say(exchange, "to the server");
  CHECK(wire.find("to the server") == std::string::npos);
  auto server = another.server.handshake.take_records();
  std::string_view bytes = wire;
  std::array<std::byte, 100> into;
  CHECK_THROWS_AS(server->open(bytes, into), Error);
}

TEST_CASE("between processes of one host, and with --insecure, nothing is sealed") {
  const auto is_sealed = [](bool has_secret, bool is_local) {
    const auto change = [&](HandshakeSettings& end) {
      if (!has_secret) end.secret.reset();
      end.is_local = is_local;
    };
    Exchange exchange = meet(change, change);
    REQUIRE(exchange.both_finished());
    return exchange.client.handshake.take_records().has_value();
  };
  CHECK(is_sealed(true, false));
  CHECK_FALSE(is_sealed(true, true));
  CHECK_FALSE(is_sealed(false, false));
  // One end alone cannot leave it out.
  const Exchange one = meet([](HandshakeSettings& client) { client.is_local = true; });
  CHECK(one.neither_finished());
  CHECK(one.server.failure == "10.0.0.2:4711 does not seal what it sends, where both ends have to");
}

TEST_CASE("the secret, and what is derived from it, is not in what is sent") {
  Exchange exchange(settings(Side::client), settings(Side::server));
  std::string wire;
  exchange.run(1000, [&](std::string bytes, bool) {
    wire += bytes;
    return bytes;
  });
  REQUIRE(exchange.both_finished());
  CHECK(wire.find("0123456789abcdef") == std::string::npos);
}

TEST_CASE("what follows the handshake at once is left to who comes next") {
  Exchange exchange(settings(Side::client), settings(Side::server));
  exchange.run(1000, [&](std::string bytes, bool to_server) {
    // With the client's last bytes.
    return to_server && exchange.client.handshake.finished() && !bytes.empty() ? bytes + "frames" : bytes;
  });
  CHECK(exchange.both_finished());
  CHECK(exchange.server.frames == "frames");
}

TEST_CASE("with different secrets both sides say so, and name their own file") {
  const Exchange exchange = meet([](HandshakeSettings& client) { client.secret = Secret::random(); });
  CHECK(exchange.neither_finished());
  CHECK(
      exchange.client.failure ==
      "10.0.0.1:7777 has another secret than this host (/users/c/secret) | copy the same file to every host "
      "(with "
      "mode 0600), and name it with --secret-file where it is not /users/c/secret; launchers need one "
      "--job_id, too");
  CHECK(
      exchange.server.failure ==
      "10.0.0.2:4711 has another secret than this host (/users/s/secret) | copy the same file to every host "
      "(with "
      "mode 0600), and name it with --secret-file where it is not /users/s/secret; launchers need one "
      "--job_id, too");
  CHECK(exchange.client.config);
  CHECK(exchange.server.config);
}

TEST_CASE("--insecure on one side only is refused on both") {
  const Exchange exchange = meet([](HandshakeSettings& client) { client.secret.reset(); });
  CHECK(exchange.neither_finished());
  CHECK(exchange.client.failure ==
        "10.0.0.1:7777 runs without --insecure, and this host with it | leave --insecure out everywhere, or "
        "give it on "
        "all hosts");
  CHECK(exchange.server.failure ==
        "10.0.0.2:4711 runs with --insecure, and this host without it | leave --insecure out everywhere, or "
        "give it on "
        "all hosts");
}

TEST_CASE("without a secret on both sides they agree, too") {
  const auto without = [](HandshakeSettings& end) { end.secret.reset(); };
  CHECK(meet(without, without).both_finished());
}

TEST_CASE("different versions are named on both sides before anything else") {
  const Exchange exchange = meet([](HandshakeSettings& client) {
    client.protocol = 7;
    client.version = "9.0.0";
    client.secret = Secret::random();
    client.purpose = "else";
  });
  CHECK(exchange.neither_finished());
  CHECK(exchange.client.failure ==
        "10.0.0.1:7777 runs fleetrun 1.2.3 (protocol 2), and this host fleetrun 9.0.0 (protocol 7) | install "
        "the same "
        "fleetrun on all hosts");
  CHECK(exchange.server.failure ==
        "10.0.0.2:4711 runs fleetrun 9.0.0 (protocol 7), and this host fleetrun 1.2.3 (protocol 2) | install "
        "the same "
        "fleetrun on all hosts");
}

TEST_CASE("a connection for something else is refused on both") {
  const Exchange purposes = meet([](HandshakeSettings& client) { client.purpose = "store"; });
  CHECK(purposes.client.failure.find("is there for 'cluster', not for 'store'") != std::string::npos);
  CHECK(purposes.server.failure.find("is there for 'store', not for 'cluster'") != std::string::npos);
}

TEST_CASE("strangers are told nothing") {
  const std::string flood(100'000, 'x');
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), std::string("\x16\x03\x01\x02\x00", 5),
        std::string("SSH-2.0-OpenSSH"), std::string("\0", 1), flood, std::string("FLEETRUM")}) {
    End server(settings(Side::server));
    server.take(bytes, 1000);
    CHECK(server.failure.find("10.0.0.2:4711 is not fleetrun: it begins with '") == 0);
    CHECK(server.handshake.output().empty());
    CHECK(server.handshake.is_stranger());
  }
  End server(settings(Side::server));
  server.take("FLEETRU", 1000);
  CHECK(server.failure.empty());
  CHECK(server.handshake.is_stranger());
}

TEST_CASE("a handshake that is replayed proves nothing") {
  std::string recorded[2];
  Exchange exchange(settings(Side::client), settings(Side::server));
  exchange.run(1000, [&](std::string bytes, bool to_server) {
    recorded[to_server] += bytes;
    return bytes;
  });
  REQUIRE(exchange.both_finished());
  End server(settings(Side::server)), client(settings(Side::client));
  server.take(recorded[1], 1000);
  client.take(recorded[0], 1000);
  CHECK(server.failure.find("has another secret") != std::string::npos);
  CHECK(client.failure.find("has another secret") != std::string::npos);
}

TEST_CASE("an end that is sent its own bytes back is not fooled") {
  End client(settings(Side::client));
  client.take(client.handshake.output(), 1000);
  CHECK(client.failure == "10.0.0.1:7777 has the wrong part: two launchers dialled each other");
  // Both sides' openings are the server's own, with the role turned round;
  // the proof comes back as it was sent.
  End server(settings(Side::server)), other(settings(Side::client));
  server.take(other.handshake.output(), 1000);
  std::string answer = server.handshake.output();
  server.take(answer.substr(answer.size() - 34), 1000);
  CHECK(server.failure.find("has another secret") != std::string::npos);
}

TEST_CASE("no bit of the handshake can be changed: it fails, or nothing has changed") {
  // The version in the head of a plain record of TLS means nothing: it alone is not proven.
  constexpr int kMeaningless = 16;
  for (const bool to_server : {true, false}) {
    int unnoticed = 0;
    for (std::size_t bit = 0;; ++bit) {
      Exchange exchange(settings(Side::client), settings(Side::server));
      std::size_t passed = 0;
      exchange.run(1000, [&](std::string bytes, bool towards) {
        if (towards != to_server) return bytes;
        if (bit / 8 >= passed && bit / 8 - passed < bytes.size())
          bytes[bit / 8 - passed] = static_cast<char>(bytes[bit / 8 - passed] ^ (1 << bit % 8));
        passed += bytes.size();
        return bytes;
      });
      if (bit / 8 >= passed) break;  // past the end: nothing was changed
      CAPTURE(bit);
      if (!exchange.both_finished()) continue;
      ++unnoticed;
      CHECK(say(exchange, "to the server").first == "to the server");
    }
    CHECK(unnoticed <= kMeaningless);
  }
}

TEST_CASE("what is no proof is refused") {
  for (const std::string& record :
       {std::string("\x01\x10", 2), std::string("\x03\x01\x01", 3), std::string("\x02\x02\x01", 3)}) {
    End server(settings(Side::server));
    End client(settings(Side::client));
    server.take(client.handshake.output() + record, 1000);
    CHECK(server.failure.find("sent something else than its proof") != std::string::npos);
  }
  End server(settings(Side::server)), client(settings(Side::client));
  server.take(client.handshake.output() + std::string("\x02\x01\x09", 3), 1000);
  CHECK(server.failure == "10.0.0.2:4711 does not want to talk to this host, for reason 9");
}
