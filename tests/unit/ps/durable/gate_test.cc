#include "ps/durable/gate.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::Error;
using fleetrun::ErrorKind;
using fleetrun::tests::error_of;
using fleetrun::tests::text_of;
using namespace std::chrono_literals;

namespace {

constexpr ClientId kFirst{0, 77}, kSecond{1, 88};
constexpr auto kLong = 60s;

std::function<void()> count(int& calls) {
  return [&calls] { ++calls; };
}

void apply(Gate& gate, const ChangeId& id) {
  REQUIRE(gate.claim(id, true, [] {}) == Gate::Answer::go_on);
  gate.applied({id});
}

}  // namespace

TEST_CASE("a change that comes again is answered, not applied") {
  Gate gate;
  CHECK(gate.begin(kFirst) == 1);
  apply(gate, {kFirst, 1});
  CHECK(gate.claim({kFirst, 1}, true, [] {}) == Gate::Answer::applied);
  CHECK(gate.begin(kFirst) == 2);
}

TEST_CASE("a twin of a change under way waits for it") {
  Gate gate;
  int calls = 0;
  REQUIRE(gate.claim({kFirst, 1}, true, [] {}) == Gate::Answer::go_on);
  CHECK(gate.claim({kFirst, 1}, true, count(calls)) == Gate::Answer::later);
  CHECK(calls == 0);
  SUBCASE("which is then applied") {
    gate.applied({{kFirst, 1}});
    CHECK(gate.claim({kFirst, 1}, true, [] {}) == Gate::Answer::applied);
  }
  SUBCASE("which is then refused, and the twin with it") {
    gate.refused({{kFirst, 1}}, Error(ErrorKind::data, "no number"));
    CHECK(text_of([&] { gate.claim({kFirst, 1}, true, [] {}); }) == "no number");
    CHECK(gate.begin(kFirst) == 2);
  }
  SUBCASE("which comes to nothing") {
    gate.left({{kFirst, 1}});
    CHECK(gate.claim({kFirst, 1}, true, [] {}) == Gate::Answer::go_on);
  }
  CHECK(calls == 1);
}

TEST_CASE("a new incarnation starts at 1, and what the old one did is forgotten") {
  Gate gate;
  for (std::uint64_t incarnation = 1; incarnation <= 1000; ++incarnation) {
    CHECK(gate.begin({0, incarnation}) == 1);
    apply(gate, {{0, incarnation}, 1});
    apply(gate, {{0, incarnation}, 3});
  }
  CHECK(gate.histories().size() == 1);
}

TEST_CASE("a frozen gate keeps changes aside, and says how far each client has come") {
  Gate gate;
  gate.begin(kFirst);
  gate.begin(kSecond);
  apply(gate, {kFirst, 1});
  apply(gate, {kFirst, 2});
  CHECK(gate.freeze() == Gate::Sequences{{kFirst, 2}, {kSecond, 0}});
  int first = 0, second = 0, unnumbered = 0;
  CHECK(gate.claim({kFirst, 3}, true, count(first)) == Gate::Answer::later);
  CHECK(gate.claim({kSecond, 1}, true, count(second)) == Gate::Answer::later);
  CHECK(gate.claim({kSecond, 0}, true, count(unnumbered)) == Gate::Answer::later);
  CHECK(gate.claim({kFirst, 2}, true, [] {}) == Gate::Answer::applied);
  gate.open();
  CHECK(first + second + unnumbered == 3);
  CHECK_FALSE(gate.is_frozen());
  gate.open();
}

TEST_CASE("a gate that settles lets exactly the changes up to the cut in, and waits for all of them") {
  Gate gate;
  gate.begin(kFirst);
  gate.begin(kSecond);
  gate.freeze();
  int beyond = 0;
  CHECK(gate.claim({kFirst, 2}, true, count(beyond)) == Gate::Answer::later);
  auto settled = std::async(std::launch::async, [&] {
    gate.settle({{kFirst, 1}, {kSecond, 2}, {{5, 5}, 9}}, kLong);
  });
  // Kept aside when they come before settle(), let in at once otherwise.
  std::promise<void> done;
  std::atomic<int> left = 3;
  std::function<void(ChangeId)> push = [&](ChangeId id) {
    if (gate.claim(id, true, [&push, id] { push(id); }) == Gate::Answer::later) return;
    gate.applied({id});
    if (--left == 0) done.set_value();
  };
  push({kSecond, 2});
  push({kFirst, 1});
  push({kSecond, 1});
  done.get_future().get();
  settled.get();
  CHECK(beyond == 0);
  gate.open();
  CHECK(beyond == 1);
}

TEST_CASE("settling does not wait for a client that is gone, and not for ever") {
  Gate gate;
  gate.begin(kFirst);
  CHECK(error_of([&] { gate.settle({}, kLong); }).kind() == ErrorKind::config);
  gate.freeze();
  const Error error = error_of([&] { gate.settle({{kFirst, 2}}, 1ms); });
  CHECK(error.kind() == ErrorKind::timeout);
  CHECK(std::string(error.what()) ==
        "change 1 of trainer 0 is on another server, and did not come here within 1 ms");
  CHECK(gate.is_frozen());
  auto settled = std::async(std::launch::async, [&] { gate.settle({{kFirst, 2}}, kLong); });
  gate.end(kFirst);
  settled.get();
}

TEST_CASE("freezing waits for what is inside, and for another cut") {
  Gate gate;
  REQUIRE(gate.claim({kFirst, 1}, true, [] {}) == Gate::Answer::go_on);
  auto frozen = std::async(std::launch::async, [&] { return gate.freeze(); });
  while (!gate.is_frozen()) std::this_thread::yield();
  gate.applied({{kFirst, 1}});
  CHECK(frozen.get().at(kFirst) == 1);
  auto another = std::async(std::launch::async, [&] { return gate.freeze(); });
  gate.open();
  CHECK(another.get().at(kFirst) == 1);
}

TEST_CASE("a step that was claimed while the gate was open enters when it opens again") {
  Gate gate;
  REQUIRE(gate.claim({kFirst, 1}, false, [] {}) == Gate::Answer::go_on);
  gate.freeze();
  auto step = std::async(std::launch::async, [&] {
    gate.enter({{kFirst, 1}});
    gate.applied({{kFirst, 1}});
  });
  gate.open();
  step.get();
  CHECK(gate.begin(kFirst) == 2);
}

TEST_CASE("a claim that is dropped may come again") {
  Gate gate;
  int calls = 0;
  REQUIRE(gate.claim({kFirst, 1}, false, [] {}) == Gate::Answer::go_on);
  REQUIRE(gate.claim({kFirst, 1}, false, count(calls)) == Gate::Answer::later);
  gate.dropped({kFirst, 1});
  CHECK(calls == 1);
  CHECK(gate.claim({kFirst, 1}, true, [] {}) == Gate::Answer::go_on);
}

TEST_CASE("what was written down is restored, and goes on from the log") {
  Gate gate;
  gate.begin(kFirst);
  for (const std::uint64_t number : {1, 2, 4}) apply(gate, {kFirst, number});
  Gate again;
  again.restore(gate.histories());
  again.note({kFirst, 3});
  again.note_refusal({kFirst, 5}, Error(ErrorKind::data, "no"));
  CHECK(again.begin(kFirst) == 6);
  CHECK(text_of([&] { again.claim({kFirst, 5}, true, [] {}); }) == "no");
}

TEST_CASE("a gate that is closed for good refuses what it has kept aside, and opens for nobody") {
  Gate gate;
  gate.freeze();
  std::string text;
  REQUIRE(gate.claim({kFirst, 1}, true, [&] {
    text = text_of([&] { gate.claim({kFirst, 1}, true, [] {}); });
  }) == Gate::Answer::later);
  gate.close();
  CHECK(text == "the server is stopping");
  CHECK(gate.is_frozen());
  gate.open();
  CHECK(error_of([&] { gate.claim({kFirst, 2}, true, [] {}); }).kind() == ErrorKind::network);
  CHECK(error_of([&] { gate.enter({{kFirst, 1}}); }).kind() == ErrorKind::network);
}
