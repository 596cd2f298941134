#include "ps/base/fast_forward.h"

#include <doctest/doctest.h>

#include "tests/support/ps_tables.h"

using fleetrun::ps::FastForward;
using fleetrun::tests::text_of;

namespace {

constexpr std::uint64_t kAll = FastForward::kAll;

}  // namespace

TEST_CASE("a trainer that was not started again has nothing to catch up with") {
  FastForward before({});
  CHECK(before.is_idle());
  CHECK(!before.barrier(1));
  CHECK(!before.begin_epoch(1, 2).is_known);
  CHECK(before.skip_steps(0) == 0);
  CHECK(before.next_step(0) == 1);
  CHECK(!before.is_everywhere(0, 1));
  CHECK(!before.is_under_way());
}

TEST_CASE("what was complete is so at once, up to the place where the process before ended") {
  FastForward before({.barriers = 2, .sums = 1, .epochs = 2, .servers = {{2, {3, 1}}, {2, {2, 1}}}});
  CHECK(!before.is_idle());
  CHECK(before.barrier(1));
  CHECK(before.sum(1));
  CHECK(before.begin_epoch(1, 2).is_known);
  CHECK(before.skip_steps(0) == kAll);
  CHECK(before.is_everywhere(1, before.next_step(1)));
  CHECK(before.barrier(2));
  CHECK(before.begin_epoch(2, 2).is_known);
  CHECK(before.is_under_way());
  SUBCASE("thread by thread, with the steps that all servers have") {
    CHECK(before.skip_steps(0) == 2);
    CHECK(before.is_under_way());
    CHECK(before.skip_steps(1) == 1);
    CHECK(!before.is_under_way());
  }
  SUBCASE("push by push") {
    CHECK(before.is_everywhere(0, before.next_step(0)));
    CHECK(before.is_everywhere(0, before.next_step(0)));
    CHECK(before.is_under_way());
    CHECK(before.is_everywhere(1, before.next_step(1)));
    CHECK(!before.is_under_way());
  }
  CHECK(before.next_step(0) == 3);
  CHECK(!before.is_everywhere(0, 3));
  CHECK(before.has(0, 0, 3));
  CHECK(!before.has(1, 0, 3));
  CHECK(before.next_step(0) == 4);
  CHECK(!before.has(0, 0, 4));
  CHECK(!before.barrier(3));
  CHECK(!before.begin_epoch(3, 1).is_known);
  CHECK(before.skip_steps(0) == 0);
}

TEST_CASE("where only one server has begun a pass, the one before it has been left nowhere for good") {
  FastForward before({.barriers = 0, .sums = 0, .epochs = 1, .servers = {{2, {0}}, {1, {7}}}});
  CHECK(before.begin_epoch(1, 1).is_known);
  CHECK(before.skip_steps(0) == 7);
  CHECK(before.has(0, 0, 8));
  CHECK(!before.has(1, 0, 8));
  CHECK(!before.begin_epoch(2, 1).is_known);
  CHECK(before.skip_steps(0) == 0);
}

TEST_CASE("a pass that was under way has as many threads as before") {
  FastForward before({.barriers = 0, .sums = 0, .epochs = 1, .servers = {{1, {3, 4}}}});
  CHECK(text_of([&] { before.begin_epoch(1, 3); }) ==
        "pass 1 was begun with 2 threads, and after a restart of its trainer with 3");
}

TEST_CASE("where epochs are counted, they are known by their data") {
  const FastForward::Done done{.barriers = 3,
                               .sums = 2,
                               .epochs = 3,
                               .servers = {{3, {4, 2}}, {3, {3, 2}}},
                               .marks = {{70, 1, 0}, {71, 2, 1}, {72, 3, 2}},
                               .is_cut = true};
  FastForward before(done);
  SUBCASE("a script that begins anew has them in their turn") {
    before.barrier(1);
    CHECK(before.begin_epoch(1, 2, 70).is_known);
    CHECK(before.skip_steps(1) == kAll);
    const FastForward::Begun second = before.begin_epoch(2, 2, 71);
    CHECK(second.number == 2);
    CHECK(second.barriers == 1);
  }
  SUBCASE("one that leaves out what is done begins with the last, and meets the others where it was then") {
    before.barrier(1);
    const FastForward::Begun last = before.begin_epoch(1, 2, 72);
    CHECK(last.number == 3);
    CHECK(last.is_known);
    CHECK(!last.leaves_cut);
    CHECK(last.barriers == 3);
    CHECK(last.sums == 2);
    CHECK(before.skip_steps(0) == 3);
    CHECK(before.is_ahead_somewhere());
    CHECK(before.next_step(0) == 4);
    CHECK(before.has(0, 0, 4));
    CHECK(!before.has(1, 0, 4));
    CHECK(before.skip_steps(1) == 2);
    CHECK(!before.is_ahead_somewhere());
  }
  SUBCASE("data that nothing is known of are those in turn") {
    CHECK(before.begin_epoch(1, 2, 0).number == 1);
    CHECK(before.begin_epoch(2, 2, 71).number == 2);
  }
  SUBCASE("other data are new, and everything is done before them") {
    before.barrier(1);
    const FastForward::Begun fresh = before.begin_epoch(1, 3, 99);
    CHECK(fresh.number == 4);
    CHECK(!fresh.is_known);
    CHECK(fresh.leaves_cut);
    CHECK(fresh.barriers == 3);
    CHECK(fresh.sums == 2);
    CHECK(before.skip_steps(0) == 0);
    CHECK(!before.is_under_way());
    const FastForward::Begun next = before.begin_epoch(5, 3, 100);
    CHECK(next.number == 5);
    CHECK(!next.leaves_cut);
  }
}
