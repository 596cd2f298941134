// Who has no secret, or another one; who sits in the path; who recorded what others said: T1, T4, T5, T16.
#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ps/sync/trainer_registry.h"
#include "runtime/base/error.h"
#include "runtime/base/frames.h"
#include "runtime/secure/handshake.h"
#include "runtime/secure/job_secret_file.h"
#include "tests/attack/attack.h"

using namespace fleetrun;
using fleetrun::tests::goes_through;
using fleetrun::tests::stopped_only_by;

namespace {

Handshake end_of(Side side, const Secret& secret, bool is_local = false) {
  HandshakeSettings settings;
  settings.side = side;
  settings.secret = secret;
  settings.purpose = "cluster";
  settings.version = "1";
  settings.peer = "the other end";
  settings.is_local = is_local;
  return Handshake(std::move(settings));
}

/// What `to` makes of what `from` has to say; the words themselves.
std::string pass_on(Handshake& from, Handshake& to) {
  std::string bytes = from.output();
  for (std::string_view rest = bytes; !rest.empty() && !to.finished();) rest.remove_prefix(to.receive(rest));
  return bytes;
}

/// What the server takes as messages of the client's, which sent "stop job 1" once, by way of somebody.
template <class Change>
std::vector<std::string> taken_of(Change change) {
  const Secret secret = Secret::random();
  Handshake client = end_of(Side::client, secret), server = end_of(Side::server, secret);
  for (int round = 0; round < 3; ++round) {
    pass_on(client, server);
    pass_on(server, client);
  }
  auto from = client.take_records(), to = server.take_records();
  std::string frame, bytes;
  append_frame("stop job 1", frame);
  if (from)
    from->seal(std::as_bytes(std::span(frame)), bytes);
  else
    bytes = frame;
  change(bytes);
  FrameReader reader(1024);
  std::vector<std::string> taken;
  goes_through([&] {
    std::array<std::byte, 1024> plain;
    std::string_view rest = bytes;
    if (!to) reader.receive(bytes);
    while (to && !rest.empty()) {
      const std::size_t count = to->open(rest, plain);
      reader.receive({reinterpret_cast<const char*>(plain.data()), count});
    }
  });
  while (const auto message = reader.next()) taken.emplace_back(*message);
  return taken;
}

/// Whether a server that knows `secret` lets somebody in who has `other`. On one host: between hosts records
/// need the secret, too.
bool lets_in(const Secret& secret, const Secret& other) {
  Handshake server = end_of(Side::server, secret, true), client = end_of(Side::client, other, true);
  return goes_through([&] {
           for (int round = 0; round < 3; ++round) {
             pass_on(client, server);
             pass_on(server, client);
           }
         }) &&
         server.finished();
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
  stopped_only_by("sealed records", [] {
    return taken_of([](std::string& bytes) {
             bytes.back() = static_cast<char>(bytes.back() ^ ('1' ^ '2'));
           }) == std::vector<std::string>{"stop job 2"};
  });
}

TEST_CASE("T5: what a client said to a server opens a connection when it is played again") {
  stopped_only_by("fresh nonces", [] {
    const Secret secret = Secret::random();
    // Of one host: between hosts records have random numbers of their own.
    Handshake client = end_of(Side::client, secret, true), server = end_of(Side::server, secret, true);
    std::string recorded = pass_on(client, server);
    pass_on(server, client);
    recorded += pass_on(client, server);
    REQUIRE(server.finished());
    Handshake again = end_of(Side::server, secret, true);
    return goes_through([&] { again.receive(recorded); }) && again.finished();
  });
}

TEST_CASE("T5: a message that comes twice is taken twice") {
  stopped_only_by("sealed records",
                  [] { return taken_of([](std::string& bytes) { bytes += bytes; }).size() == 2; });
}

TEST_CASE("T16: a trainer that was taken for lost comes back for its part, which another has") {
  stopped_only_by("fenced trainers", [] {
    ps::TrainerRegistry registry("server 0", 2, 1);
    registry.hello({.trainer = 0, .incarnation = 7, .generation = 1, .launcher = "a"});
    registry.update({.generation = 2, .in_place = true, .trainers = {{0, "b"}, {1, "c"}}});
    return goes_through([&] { registry.hello({.trainer = 0, .incarnation = 7, .generation = 1}); });
  });
}
