#include "runtime/secure/tls_session.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

using namespace fleetrun;

namespace {

struct Channel {
  TlsSession client, server;
  std::string client_failure, server_failure, wire;

  Channel(const std::optional<Secret>& client_secret, const std::optional<Secret>& server_secret)
      : client(Side::client, TlsIdentity::make(client_secret)),
        server(Side::server, TlsIdentity::make(server_secret)) {}

  /// Until nobody says anything any more.
  Channel& run(std::size_t piece = 100'000) {
    for (int rounds = 0; rounds < 10; ++rounds) {
      carry(client, server, piece, server_failure);
      carry(server, client, piece, client_failure);
    }
    return *this;
  }

 private:
  void carry(TlsSession& from, TlsSession& to, std::size_t piece, std::string& failure) {
    const std::string bytes = from.output();
    wire += bytes;
    try {
      for (std::size_t at = 0; at < bytes.size(); at += piece)
        to.receive(std::string_view(bytes).substr(at, piece));
    } catch (const Error& error) {
      if (failure.empty()) failure = error.what();
    }
  }
};

}  // namespace

TEST_CASE("ends with one secret have a channel that nobody reads along, however the bytes are cut") {
  const Secret secret = Secret::random();
  for (const std::size_t piece : {1, 7, 1000, 100'000}) {
    Channel channel(secret, secret);
    channel.run(piece);
    REQUIRE(channel.client.established());
    REQUIRE(channel.server.established());
    CHECK(channel.client.binding() == channel.server.binding());
    CHECK(channel.client.binding().size() == 32);
    const std::string message(50'000, 'm');
    channel.client.write(message);
    channel.server.write("to the client");
    channel.run(piece);
    CHECK(channel.server.plain() == message);
    CHECK(channel.client.plain() == "to the client");
    CHECK(channel.wire.find("mmmm") == std::string::npos);
    CHECK(channel.wire.find(secret.bytes()) == std::string::npos);
  }
}

TEST_CASE("each channel has a binding of its own") {
  const Secret secret = Secret::random();
  Channel one(secret, secret), two(secret, secret);
  CHECK(one.run().client.binding() != two.run().client.binding());
}

TEST_CASE("a certificate of another secret is refused, and both sides know it") {
  Channel channel(Secret::random(), Secret::random());
  channel.run();
  CHECK(channel.client_failure == "its certificate is not of the same secret");
  CHECK(channel.server_failure == "its certificate is not of the same secret");
  CHECK_FALSE(channel.server.established());
}

TEST_CASE("without a secret there is a channel all the same") {
  Channel channel(std::nullopt, std::nullopt);
  CHECK(channel.run().server.established());
}

TEST_CASE("what is no TLS is refused") {
  TlsSession server(Side::server, TlsIdentity::make(Secret::random()));
  CHECK_THROWS_AS(server.receive("GET / HTTP/1.1\r\n\r\n"), Error);
}

TEST_CASE("a changed byte breaks the channel") {
  const Secret secret = Secret::random();
  Channel channel(secret, secret);
  channel.run();
  channel.client.write("a message");
  std::string bytes = channel.client.output();
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  CHECK_THROWS_AS(channel.server.receive(bytes), Error);
  CHECK(channel.server.plain().empty());
}
