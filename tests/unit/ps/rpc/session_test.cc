#include "ps/rpc/session.h"
#include "runtime/base/random_bytes.h"

#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::ps;

namespace {

constexpr std::string_view kMethod = "/fleetrun.ParameterServer/Call";

struct Ends {
  SessionKeys client, server;
};

Ends make_ends() {
  Ends ends;
  fill_with_random_bytes(ends.client.to_peer);
  fill_with_random_bytes(ends.client.from_peer);
  ends.server.to_peer = ends.client.from_peer;
  ends.server.from_peer = ends.client.to_peer;
  return ends;
}

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

bool accepts(ServerSession& session, const CallProof& call, std::string_view method, std::string_view body) {
  const std::vector<std::span<const std::byte>> pieces{bytes(body.substr(0, 2)), bytes(body.substr(2))};
  return session.accept(call, method, pieces);
}

}  // namespace

TEST_CASE("a call is accepted once, whole, and with its own method and number") {
  const Ends ends = make_ends();
  ClientSession client(ends.client);
  ServerSession server(ends.server);
  const CallProof call = client.prove(kMethod, bytes("a push"));
  CHECK(call.session == server.id());
  CHECK(!accepts(server, call, "/fleetrun.ParameterServer/Other", "a push"));
  CHECK(!accepts(server, call, kMethod, "a Push"));
  CHECK(!accepts(server, call, kMethod, "a pus"));
  CallProof renumbered = call;
  renumbered.number += 1;
  CHECK(!accepts(server, renumbered, kMethod, "a push"));
  // What was refused has not used the number up.
  CHECK(accepts(server, call, kMethod, "a push"));
  CHECK(!accepts(server, call, kMethod, "a push"));
  CHECK(accepts(server, client.prove(kMethod, bytes("a push")), kMethod, "a push"));
}

TEST_CASE("a call of one connection is worth nothing in another, nor as an answer") {
  const Ends one = make_ends();
  const Ends other = make_ends();
  ClientSession client(one.client);
  ServerSession stranger(other.server);
  const CallProof call = client.prove(kMethod, bytes("a push"));
  CHECK(!accepts(stranger, call, kMethod, "a push"));
  const auto body = bytes("a push");
  CHECK(!client.is_answer(call, {reinterpret_cast<const char*>(call.code.data()), call.code.size()},
                          Pieces(&body, 1)));
}

TEST_CASE("an answer belongs to its call") {
  const Ends ends = make_ends();
  ClientSession client(ends.client);
  const ServerSession server(ends.server);
  const CallProof call = client.prove(kMethod, bytes("a pull"));
  const CallProof next = client.prove(kMethod, bytes("a pull"));
  const auto rows = bytes("rows");
  const std::string code = server.prove(call, rows);
  CHECK(client.is_answer(call, code, Pieces(&rows, 1)));
  CHECK(!client.is_answer(next, code, Pieces(&rows, 1)));
  CHECK(!client.is_answer(call, code.substr(1), Pieces(&rows, 1)));
  const auto others = bytes("rowS");
  CHECK(!client.is_answer(call, code, Pieces(&others, 1)));
}

TEST_CASE("a proof is 32 bytes of metadata; anything else is none") {
  const Ends ends = make_ends();
  const CallProof call = ClientSession(ends.client).prove(kMethod, bytes("x y"));
  const std::string text = to_text(call);
  REQUIRE(text.size() == 32);
  const auto back = parse_proof(text);
  REQUIRE(back);
  CHECK(to_text(*back) == text);
  CHECK(!parse_proof(""));
  CHECK(!parse_proof(text.substr(1)));
  CHECK(!parse_proof(text + "x"));
}

TEST_CASE("a window takes each number once, in any order, and none that is far behind") {
  CallWindow window;
  std::set<std::uint64_t> taken;
  std::mt19937_64 random(1);
  std::uint64_t highest = 0;
  for (int i = 0; i < 300'000; ++i) {
    const std::uint64_t base = highest < 1000 ? 0 : highest - 1000;
    const std::uint64_t number = base + random() % 2000 + (random() % 5000 == 0 ? random() % 200'000 : 0);
    CHECK(window.take(number) == taken.insert(number).second);
    highest = std::max(highest, number);
  }
  CHECK(!window.take(highest - CallWindow::kWidth));
  CHECK(!window.take(UINT64_MAX));
  CHECK(window.take(highest + 10 * CallWindow::kWidth));
  CHECK(!window.take(highest + 10 * CallWindow::kWidth));
  CHECK(!window.take(highest));
  CHECK(window.take(highest + 9 * CallWindow::kWidth + 1));
}

TEST_CASE("sessions are bounded: the one that was quiet longest gives way, one that attends never") {
  Sessions sessions;
  std::vector<std::uint64_t> ids;
  const auto add = [&] {
    auto session = std::make_shared<ServerSession>(make_ends().server);
    ids.push_back(session->id());
    sessions.add(std::move(session));
  };
  add();
  add();
  add();
  sessions.keep(ids[0], true);
  CHECK(sessions.find(ids[1]) != nullptr);
  while (sessions.size() < Sessions::kMax) add();
  add();
  CHECK(sessions.size() == Sessions::kMax);
  CHECK(sessions.find(ids[0]) != nullptr);
  CHECK(sessions.find(ids[1]) != nullptr);
  CHECK(sessions.find(ids[2]) == nullptr);
  sessions.remove(ids[0]);
  CHECK(sessions.find(ids[0]) == nullptr);
}
