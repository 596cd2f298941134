#include "ps/durable/write_barrier.h"

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

void apply(WriteBarrier& write_barrier, const ChangeId& id) {
  REQUIRE(write_barrier.claim(id, true, [] {}) == WriteBarrier::Answer::go_on);
  write_barrier.applied({id});
}

}  // namespace

TEST_CASE("a change that comes again is answered, not applied") {
  WriteBarrier write_barrier;
  CHECK(write_barrier.begin(kFirst) == 1);
  apply(write_barrier, {kFirst, 1});
  CHECK(write_barrier.claim({kFirst, 1}, true, [] {}) == WriteBarrier::Answer::applied);
  CHECK(write_barrier.begin(kFirst) == 2);
}

TEST_CASE("a twin of a change under way waits for it") {
  WriteBarrier write_barrier;
  int calls = 0;
  REQUIRE(write_barrier.claim({kFirst, 1}, true, [] {}) == WriteBarrier::Answer::go_on);
  CHECK(write_barrier.claim({kFirst, 1}, true, count(calls)) == WriteBarrier::Answer::later);
  CHECK(calls == 0);
  SUBCASE("which is then applied") {
    write_barrier.applied({{kFirst, 1}});
    CHECK(write_barrier.claim({kFirst, 1}, true, [] {}) == WriteBarrier::Answer::applied);
  }
  SUBCASE("which is then refused, and the twin with it") {
    write_barrier.refused({{kFirst, 1}}, Error(ErrorKind::data, "no number"));
    CHECK(text_of([&] { write_barrier.claim({kFirst, 1}, true, [] {}); }) == "no number");
    CHECK(write_barrier.begin(kFirst) == 2);
  }
  SUBCASE("which comes to nothing") {
    write_barrier.left({{kFirst, 1}});
    CHECK(write_barrier.claim({kFirst, 1}, true, [] {}) == WriteBarrier::Answer::go_on);
  }
  CHECK(calls == 1);
}

TEST_CASE("a new incarnation starts at 1, and what the old one did is forgotten") {
  WriteBarrier write_barrier;
  for (std::uint64_t incarnation = 1; incarnation <= 1000; ++incarnation) {
    CHECK(write_barrier.begin({0, incarnation}) == 1);
    apply(write_barrier, {{0, incarnation}, 1});
    apply(write_barrier, {{0, incarnation}, 3});
  }
  CHECK(write_barrier.histories().size() == 1);
}

TEST_CASE("a frozen write barrier keeps changes aside, and says how far each client has come") {
  WriteBarrier write_barrier;
  write_barrier.begin(kFirst);
  write_barrier.begin(kSecond);
  apply(write_barrier, {kFirst, 1});
  apply(write_barrier, {kFirst, 2});
  CHECK(write_barrier.freeze() == WriteBarrier::Sequences{{kFirst, 2}, {kSecond, 0}});
  int first = 0, second = 0, unnumbered = 0;
  CHECK(write_barrier.claim({kFirst, 3}, true, count(first)) == WriteBarrier::Answer::later);
  CHECK(write_barrier.claim({kSecond, 1}, true, count(second)) == WriteBarrier::Answer::later);
  CHECK(write_barrier.claim({kSecond, 0}, true, count(unnumbered)) == WriteBarrier::Answer::later);
  CHECK(write_barrier.claim({kFirst, 2}, true, [] {}) == WriteBarrier::Answer::applied);
  write_barrier.open();
  CHECK(first + second + unnumbered == 3);
  CHECK_FALSE(write_barrier.is_frozen());
  write_barrier.open();
}

TEST_CASE(
    "a write barrier that settles lets exactly the changes up to the cut in, and waits for all of them") {
  WriteBarrier write_barrier;
  write_barrier.begin(kFirst);
  write_barrier.begin(kSecond);
  write_barrier.freeze();
  int beyond = 0;
  CHECK(write_barrier.claim({kFirst, 2}, true, count(beyond)) == WriteBarrier::Answer::later);
  auto settled = std::async(std::launch::async, [&] {
    write_barrier.settle({{kFirst, 1}, {kSecond, 2}, {{5, 5}, 9}}, kLong);
  });
  // Kept aside when they come before settle(), let in at once otherwise.
  std::promise<void> done;
  std::atomic<int> left = 3;
  std::function<void(ChangeId)> push = [&](ChangeId id) {
    if (write_barrier.claim(id, true, [&push, id] { push(id); }) == WriteBarrier::Answer::later) return;
    write_barrier.applied({id});
    if (--left == 0) done.set_value();
  };
  push({kSecond, 2});
  push({kFirst, 1});
  push({kSecond, 1});
  done.get_future().get();
  settled.get();
  CHECK(beyond == 0);
  write_barrier.open();
  CHECK(beyond == 1);
}

TEST_CASE("settling does not wait for a client that is gone, and not for ever") {
  WriteBarrier write_barrier;
  write_barrier.begin(kFirst);
  CHECK(error_of([&] { write_barrier.settle({}, kLong); }).kind() == ErrorKind::config);
  write_barrier.freeze();
  const Error error = error_of([&] { write_barrier.settle({{kFirst, 2}}, 1ms); });
  CHECK(error.kind() == ErrorKind::timeout);
  CHECK(std::string(error.what()) ==
        "change 1 of trainer 0 is on another server, and did not come here within 1 ms");
  CHECK(write_barrier.is_frozen());
  auto settled = std::async(std::launch::async, [&] { write_barrier.settle({{kFirst, 2}}, kLong); });
  write_barrier.end(kFirst);
  settled.get();
}

TEST_CASE("freezing waits for what is inside, and for another cut") {
  WriteBarrier write_barrier;
  REQUIRE(write_barrier.claim({kFirst, 1}, true, [] {}) == WriteBarrier::Answer::go_on);
  auto frozen = std::async(std::launch::async, [&] { return write_barrier.freeze(); });
  while (!write_barrier.is_frozen()) std::this_thread::yield();
  write_barrier.applied({{kFirst, 1}});
  CHECK(frozen.get().at(kFirst) == 1);
  auto another = std::async(std::launch::async, [&] { return write_barrier.freeze(); });
  write_barrier.open();
  CHECK(another.get().at(kFirst) == 1);
}

TEST_CASE("a step that was claimed while the write barrier was open enters when it opens again") {
  WriteBarrier write_barrier;
  REQUIRE(write_barrier.claim({kFirst, 1}, false, [] {}) == WriteBarrier::Answer::go_on);
  write_barrier.freeze();
  auto step = std::async(std::launch::async, [&] {
    write_barrier.enter({{kFirst, 1}});
    write_barrier.applied({{kFirst, 1}});
  });
  write_barrier.open();
  step.get();
  CHECK(write_barrier.begin(kFirst) == 2);
}

TEST_CASE("a claim that is dropped may come again") {
  WriteBarrier write_barrier;
  int calls = 0;
  REQUIRE(write_barrier.claim({kFirst, 1}, false, [] {}) == WriteBarrier::Answer::go_on);
  REQUIRE(write_barrier.claim({kFirst, 1}, false, count(calls)) == WriteBarrier::Answer::later);
  write_barrier.dropped({kFirst, 1});
  CHECK(calls == 1);
  CHECK(write_barrier.claim({kFirst, 1}, true, [] {}) == WriteBarrier::Answer::go_on);
}

TEST_CASE("what was written down is restored, and goes on from the log") {
  WriteBarrier write_barrier;
  write_barrier.begin(kFirst);
  for (const std::uint64_t number : {1, 2, 4}) apply(write_barrier, {kFirst, number});
  WriteBarrier again;
  again.restore(write_barrier.histories());
  again.note({kFirst, 3});
  again.note_refusal({kFirst, 5}, Error(ErrorKind::data, "no"));
  CHECK(again.begin(kFirst) == 6);
  CHECK(text_of([&] { again.claim({kFirst, 5}, true, [] {}); }) == "no");
}

TEST_CASE("a write barrier that is closed for good refuses what it has kept aside, and opens for nobody") {
  WriteBarrier write_barrier;
  write_barrier.freeze();
  std::string text;
  REQUIRE(write_barrier.claim({kFirst, 1}, true, [&] {
    text = text_of([&] { write_barrier.claim({kFirst, 1}, true, [] {}); });
  }) == WriteBarrier::Answer::later);
  write_barrier.close();
  CHECK(text == "the server is stopping");
  CHECK(write_barrier.is_frozen());
  write_barrier.open();
  CHECK(error_of([&] { write_barrier.claim({kFirst, 2}, true, [] {}); }).kind() == ErrorKind::network);
  CHECK(error_of([&] { write_barrier.enter({{kFirst, 1}}); }).kind() == ErrorKind::network);
}
