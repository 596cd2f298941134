#include <doctest/doctest.h>

#include "ps/sync/barrier_service.h"
#include "tests/support/barrier_answer.h"

using namespace fleetrun::ps;
using namespace fleetrun::tests;
using fleetrun::Error;

namespace {

// A barrier service that keeps its events as a log does.
struct Kept {
  std::vector<Bytes> log;
  int done = 0;
  BarrierService barrier_service{"server 0",
                                 2,
                                 {[](const std::vector<Contribution>&) {}, [this] { ++done; }, kept_in(log),
                                  [](const std::function<void()>& answer) { answer(); }}};

  void replay(const std::vector<Bytes>& events) {
    for (const Bytes& event : events) {
      Reader reader(event.bytes());
      barrier_service.replay(read_barrier_event(reader));
      REQUIRE(reader.remaining() == 0);
    }
  }
};

Bytes description_of(const BarrierService& barrier_service) {
  Bytes out;
  barrier_service.describe([&](const Bytes& bytes) { out = bytes; });
  return out;
}

std::vector<std::byte> bytes_of(const Bytes& bytes) {
  return {bytes.bytes().begin(), bytes.bytes().end()};
}

void meet(Kept& kept) {
  kept.barrier_service.update({2, true, {{0, "a"}, {1, "b"}, {2, "c"}}});
  kept.barrier_service.hello({0, 10, 2, "a"});
  kept.barrier_service.hello({1, 11, 2, "b"});
  kept.barrier_service.hello({2, 12, 2, "c"});
  Answer ignored;
  for (const std::uint32_t t : {0u, 1u, 2u})
    kept.barrier_service.gather(BarrierService::Kind::begin_epoch, t, {2.0}, ignored.respond(), 1);
  kept.barrier_service.leave_epoch({1, 0}, 1);
  for (const std::uint32_t t : {0u, 1u, 2u})
    kept.barrier_service.gather(BarrierService::Kind::all_reduce, t, {1.5}, ignored.respond(), 1);
  kept.barrier_service.lost(2, 12);
  kept.barrier_service.goodbye(1);
  kept.barrier_service.hello({3, 13, 3, "d", 0, wire::kCountsEpochs});
  kept.barrier_service.begin_counted({3, 13}, 1, {2, 0, {70, 0, 0}});
  kept.barrier_service.leave_epoch({3, 0}, 1);
}

}  // namespace

TEST_CASE("what has happened, told again, makes the same state; so does its description") {
  Kept before;
  meet(before);
  Kept replayed;
  replayed.replay(before.log);
  CHECK(bytes_of(description_of(replayed.barrier_service)) ==
        bytes_of(description_of(before.barrier_service)));
  CHECK(replayed.log.size() + 0 <= before.log.size());
  Kept restored;
  const Bytes description = description_of(before.barrier_service);
  Reader reader(description.bytes());
  restored.barrier_service.restore(reader);
  CHECK(reader.remaining() == 0);
  CHECK(bytes_of(description_of(restored.barrier_service)) == bytes_of(description));
}

TEST_CASE("a description or event that is cut short is refused") {
  Kept before;
  meet(before);
  const Bytes description = description_of(before.barrier_service);
  for (std::size_t size = 0; size < description.bytes().size(); ++size) {
    BarrierService barrier_service("server 0", 2, {});
    Reader reader(description.bytes().first(size));
    CHECK_THROWS_AS(barrier_service.restore(reader), Error);
  }
  for (const Bytes& event : before.log) {
    for (std::size_t size = 0; size < event.bytes().size(); ++size) {
      Reader reader(event.bytes().first(size));
      CHECK_THROWS_AS(read_barrier_event(reader), Error);
    }
  }
}

TEST_CASE(
    "after a restart who was here is away; who comes back goes on, and a sum that is over is answered "
    "again") {
  Kept before;
  before.barrier_service.hello({0, 10});
  before.barrier_service.hello({1, 11});
  Answer first, second;
  before.barrier_service.gather(BarrierService::Kind::all_reduce, 0, {1.0}, first.respond(), 1);
  before.barrier_service.gather(BarrierService::Kind::all_reduce, 1, {2.0}, second.respond(), 1);
  CHECK(first.value == 3.0);
  Kept after;
  after.replay(before.log);
  CHECK(after.barrier_service.go_on() == std::vector<ClientId>{{0, 10}, {1, 11}});
  CHECK_THROWS_AS(after.barrier_service.require(0, 10), Error);
  after.barrier_service.hello({0, 10, 0, "", 5});
  after.barrier_service.require(0, 10);
  CHECK(after.barrier_service.rounds(0) == BarrierService::Rounds{0, 1, 0});
  Answer again;
  after.barrier_service.gather(BarrierService::Kind::all_reduce, 0, {1.0}, again.respond(), 1);
  CHECK(again.value == 3.0);
  // The other is waited for, until it was given up.
  Answer next;
  after.barrier_service.gather(BarrierService::Kind::barrier, 0, {}, next.respond(), 1);
  CHECK(next.text == "nothing");
  SUBCASE("it comes back") {
    after.barrier_service.hello({1, 11, 0, "", 6});
    CHECK_FALSE(after.barrier_service.give_up(1, 11, 0));
    Answer other;
    after.barrier_service.gather(BarrierService::Kind::barrier, 1, {}, other.respond(), 1);
    CHECK(next.text == "ok");
  }
  SUBCASE("it does not") {
    CHECK(after.barrier_service.give_up(1, 11, 0));
    CHECK(next.text == "trainer 1 is gone: its connection to server 0 ended without a goodbye");
  }
}

TEST_CASE("the end of an old connection is not that of the trainer") {
  Kept kept;
  kept.barrier_service.hello({0, 10, 0, "", 5});
  kept.barrier_service.hello({0, 10, 0, "", 6});
  CHECK_FALSE(kept.barrier_service.leave_for_now(0, 10, 5));
  CHECK(kept.barrier_service.leave_for_now(0, 10, 6));
  CHECK_FALSE(kept.barrier_service.give_up(0, 10, 5));
  CHECK(kept.barrier_service.give_up(0, 10, 6));
}
