// Who has no secret, or another one; who sits in the path; who recorded what others said: T1, T4, T5, T16.
#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "ps/rpc/session.h"
#include "ps/sync/trainer_registry.h"
#include "runtime/base/error.h"
#include "runtime/secure/handshake.h"
#include "runtime/secure/job_secret_file.h"
#include "runtime/secure/sealed_frames.h"
#include "runtime/secure/tls_session.h"
#include "tests/attack/attack.h"

using namespace fleetrun;
using fleetrun::tests::goes_through;
using fleetrun::tests::stopped_only_by;

namespace {

Handshake end_of(Side side, const Secret& secret, bool tls = false) {
  HandshakeSettings settings;
  settings.side = side;
  settings.secret = secret;
  settings.purpose = "cluster";
  settings.version = "1";
  settings.peer = "the other end";
  settings.tls = tls;
  return Handshake(std::move(settings));
}

/// What `to` makes of what `from` has to say; the words themselves.
std::string pass_on(Handshake& from, Handshake& to) {
  std::string bytes = from.output();
  to.receive(bytes);
  return bytes;
}

/// Whether a server that knows `secret` lets somebody in who has `other`.
bool lets_in(const Secret& secret, const Secret& other) {
  Handshake server = end_of(Side::server, secret), client = end_of(Side::client, other);
  return goes_through([&] {
           for (int round = 0; round < 3; ++round) {
             pass_on(client, server);
             pass_on(server, client);
           }
         }) &&
         server.finished();
}

Digest key_of(unsigned char byte) {
  Digest key;
  key.fill(byte);
  return key;
}

}  // namespace

TEST_CASE("T1: who has another secret is let in") {
  stopped_only_by("proof of the secret", [] { return lets_in(Secret::random(), Secret::random()); });
}

TEST_CASE("T1: a host that was given one job's secret joins another job") {
  stopped_only_by("a secret for each job", [] {
    const Secret own = Secret::random();
    return lets_in(secret_of_job(own, "other"), secret_of_job(own, "given"));
  });
}

TEST_CASE("T4: a message that is changed on the way is taken") {
  stopped_only_by("sealed frames", [] {
    FrameSealer sealer(key_of(1));
    FrameOpener opener(key_of(1), 1024);
    std::string bytes;
    sealer.seal("stop job 1", bytes);
    bytes[4 + 9] = '2';
    opener.receive(bytes);
    std::string taken;
    return goes_through([&] { taken = opener.next().value(); }) && taken == "stop job 2";
  });
}

TEST_CASE("T4: a call to a parameter server that is changed on the way is taken") {
  stopped_only_by("sealed calls", [] {
    SessionKeys keys, mirrored;
    keys.to_peer = mirrored.from_peer = key_of(1);
    keys.from_peer = mirrored.to_peer = key_of(2);
    ps::ClientSession client(keys);
    ps::ServerSession server(mirrored);
    std::string body = "add 1";
    const ps::CallProof proof = client.prove("/push", std::as_bytes(std::span(body)));
    body = "add 9";
    const std::span<const std::byte> changed = std::as_bytes(std::span(body));
    return server.accept(proof, "/push", ps::Pieces(&changed, 1));
  });
}

TEST_CASE("T4: who sits between two TLS channels passes the proof from one to the other") {
  stopped_only_by("proof bound to its channel", [] {
    const Secret secret = Secret::random();
    Handshake client = end_of(Side::client, secret, true), server = end_of(Side::server, secret, true);
    return goes_through([&] {
             pass_on(client, server);
             pass_on(server, client);
             client.bind("the channel from the client to the one between");
             server.bind("the channel from the one between to the server");
             pass_on(server, client);
             pass_on(client, server);
           }) &&
           server.finished();
  });
}

TEST_CASE("T4: a certificate of somebody else's is taken") {
  stopped_only_by("certificates of the secret", [] {
    TlsSession client(Side::client, TlsIdentity::make(Secret::random()));
    TlsSession server(Side::server, TlsIdentity::make(Secret::random()));
    return goes_through([&] {
             for (int round = 0; round < 4; ++round) {
               server.receive(client.output());
               client.receive(server.output());
             }
           }) &&
           client.established() && server.established();
  });
}

TEST_CASE("T5: what a client said to a server opens a connection when it is played again") {
  stopped_only_by("fresh nonces", [] {
    const Secret secret = Secret::random();
    Handshake client = end_of(Side::client, secret), server = end_of(Side::server, secret);
    std::string recorded = pass_on(client, server);
    pass_on(server, client);
    recorded += pass_on(client, server);
    REQUIRE(server.finished());
    Handshake again = end_of(Side::server, secret);
    return goes_through([&] { again.receive(recorded); }) && again.finished();
  });
}

TEST_CASE("T5: a message that comes twice is taken twice") {
  stopped_only_by("numbered frames", [] {
    FrameSealer sealer(key_of(1));
    FrameOpener opener(key_of(1), 1024);
    std::string bytes;
    sealer.seal("start one more", bytes);
    opener.receive(bytes);
    REQUIRE(opener.next());
    opener.receive(bytes);
    return goes_through([&] { opener.next(); });
  });
}

TEST_CASE("T5: a gradient that comes twice is added twice") {
  stopped_only_by("numbered calls", [] {
    SessionKeys keys, mirrored;
    keys.to_peer = mirrored.from_peer = key_of(1);
    keys.from_peer = mirrored.to_peer = key_of(2);
    ps::ClientSession client(keys);
    ps::ServerSession server(mirrored);
    const std::string body = "add 1";
    const std::span<const std::byte> bytes = std::as_bytes(std::span(body));
    const ps::CallProof proof = client.prove("/push", bytes);
    REQUIRE(server.accept(proof, "/push", ps::Pieces(&bytes, 1)));
    return server.accept(proof, "/push", ps::Pieces(&bytes, 1));
  });
}

TEST_CASE("T16: a trainer that was taken for lost comes back for its part, which another has") {
  stopped_only_by("fenced trainers", [] {
    ps::TrainerRegistry registry("server 0", 2, 1);
    registry.hello({.trainer = 0, .incarnation = 7, .generation = 1, .launcher = "a"});
    registry.update({.generation = 2, .in_place = true, .trainers = {{0, "b"}, {1, "c"}}});
    return goes_through([&] { registry.hello({.trainer = 0, .incarnation = 7, .generation = 1}); });
  });
}
