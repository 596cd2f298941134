#include "ps/sync/roster.h"

#include <doctest/doctest.h>

#include "tests/support/ps_tables.h"

using fleetrun::ps::Roster;
using fleetrun::tests::text_of;

TEST_CASE("a trainer comes, is required, and goes") {
  Roster roster("server 3", 2);
  CHECK(text_of([&] { roster.require(0, 7); }) ==
        "trainer 0 is not known to server 3; was the server started again?");
  roster.hello(0, 7);
  roster.hello(0, 7);
  roster.require(0, 7);
  CHECK(roster.is_here(0));
  CHECK(text_of([&] { roster.require(0, 8); }) ==
        "trainer 0 is not known to server 3; was the server started again?");
  roster.goodbye(0);
  CHECK(text_of([&] { roster.require(0, 7); }) == "trainer 0 has said goodbye to server 3 already");
  CHECK(!roster.are_all_done());
  roster.hello(1, 1);
  roster.goodbye(1);
  CHECK(roster.are_all_done());
}

TEST_CASE("ranks beyond the job and ranks that are taken are refused") {
  Roster roster("server 0", 2);
  CHECK(text_of([&] { roster.hello(2, 1); }) ==
        "trainer 2 wants to join, but server 0 expects 2 trainers, with ranks from 0");
  CHECK(text_of([&] { roster.require(2, 1); }) ==
        "trainer 2 is not known to server 0; was the server started again?");
  roster.hello(1, 1);
  CHECK(text_of([&] { roster.hello(1, 2); }) == "trainer 1 is connected to server 0 already");
}

TEST_CASE("only the incarnation that is here can be lost, and another may follow it") {
  Roster roster("server 0", 2);
  CHECK(!roster.lose(0, 1));
  CHECK(!roster.lose(9, 1));
  roster.hello(1, 1);
  CHECK(!roster.lose(1, 2));
  CHECK(!roster.lost());
  CHECK(roster.lose(1, 1));
  CHECK(roster.lost() == 1u);
  CHECK(text_of([&] { roster.require(1, 1); }) == "server 0 has lost its connection to trainer 1");
  roster.hello(1, 2);
  CHECK(!roster.lost());
}

namespace {

fleetrun::ps::Attendance world(std::uint64_t epoch, std::map<std::uint32_t, std::string> trainers) {
  return {epoch, true, std::move(trainers)};
}

constexpr const char* kStale = "trainer 1 comes with stale epoch 3, the job is at ";

}  // namespace

TEST_CASE("a trainer that was taken for lost and wakes up is refused, whatever it does") {
  Roster roster("server 0", 2, 3);
  CHECK(roster.update(world(3, {{0, "a"}, {1, "b"}})).empty());
  CHECK(!roster.hello({0, 10, 3, "a"}));
  CHECK(!roster.hello({1, 11, 3, "b"}));
  CHECK(roster.update(world(5, {{0, "a"}})) == std::vector<std::uint32_t>{1});
  CHECK(text_of([&] { roster.require(1, 11, 3); }) == kStale + std::string("5"));
  CHECK(text_of([&] { roster.hello({1, 12, 3, "b"}); }) == kStale + std::string("5"));
  CHECK(!roster.lose(1, 11));
  // Its own launcher has told it nothing, or what it says is not believed.
  CHECK(text_of([&] { roster.require(1, 11, 5); }).starts_with("trainer 1 comes with stale epoch 5"));
  // The survivor goes on, though it has not heard of the new world yet.
  roster.require(0, 10, 3);
  CHECK(roster.is_awaited(0));
  CHECK(!roster.is_awaited(1));
}

TEST_CASE(
    "the new holder of a rank is let in, the old one is not, and nobody waits before the new one has come") {
  Roster roster("server 0", 2, 3);
  roster.update(world(3, {{0, "a"}, {1, "b"}}));
  roster.hello({0, 10, 3, "a"});
  roster.hello({1, 11, 3, "b"});
  roster.update(world(4, {{0, "a"}}));
  CHECK(roster.update(world(6, {{0, "a"}, {1, "c"}})).empty());
  CHECK(!roster.is_awaited(1));
  CHECK(!roster.are_all_done());
  CHECK(text_of([&] { roster.hello({1, 12, 3, "b"}); }) == kStale + std::string("6"));
  CHECK(roster.hello({1, 13, 6, "c"}));
  CHECK(!roster.is_awaited(1));
  roster.join(1);
  CHECK(roster.is_awaited(1));
  roster.require(1, 13, 6);
  CHECK(text_of([&] { roster.require(1, 11, 3); }) == kStale + std::string("6"));
}

TEST_CASE("a rank may change hands in one step, and its old holder is gone") {
  Roster roster("server 0", 2, 3);
  roster.update(world(3, {{0, "a"}, {1, "b"}}));
  roster.hello({1, 11, 3, "b"});
  CHECK(roster.update(world(4, {{0, "a"}, {1, "c"}})) == std::vector<std::uint32_t>{1});
  CHECK(text_of([&] { roster.require(1, 11, 3); }) == kStale + std::string("4"));
  CHECK(text_of([&] { roster.hello({1, 14, 4, "b"}); }) == "trainer 1 belongs to another host in epoch 4");
  CHECK(roster.hello({1, 13, 4, "c"}));
}

TEST_CASE("a trainer that knows a newer world than the server is believed, and fences the one before it") {
  Roster roster("server 0", 2, 3);
  roster.update(world(3, {{0, "a"}, {1, "b"}}));
  roster.hello({1, 11, 3, "b"});
  CHECK(roster.hello({1, 12, 5, "c"}));
  CHECK(text_of([&] { roster.require(1, 11, 3); }) == kStale + std::string("5"));
  CHECK(roster.hello({2, 20, 5, "c"}));
  CHECK(roster.trainers() == 3);
  // The world comes after all; and an older one that was on its way, too.
  CHECK(roster.update(world(4, {{0, "a"}})).empty());
  CHECK(roster.update(world(5, {{0, "d"}, {1, "c"}, {2, "c"}})) == std::vector<std::uint32_t>{0});
  CHECK(roster.update(world(4, {})).empty());
  roster.require(1, 12, 5);
  roster.require(2, 20, 5);
}

TEST_CASE("a trainer that is done stays done, and the others being gone is the end") {
  Roster roster("server 0", 3, 1);
  roster.update(world(1, {{0, "a"}, {1, "b"}, {2, "c"}}));
  for (std::uint32_t t = 0; t < 3; ++t) roster.hello({t, 1, 1, std::string(1, static_cast<char>('a' + t))});
  roster.goodbye(0);
  roster.update(world(2, {{1, "b"}, {2, "c"}}));
  CHECK(!roster.are_all_done());
  roster.update(world(3, {{2, "c"}}));
  CHECK(!roster.are_all_done());
  roster.goodbye(2);
  CHECK(roster.are_all_done());
  // One that is to come is waited for.
  roster.update(world(4, {{2, "c"}, {1, "d"}}));
  CHECK(!roster.are_all_done());
}

TEST_CASE("in a job that is started again instead, worlds change nothing but ranks beyond it stay refused") {
  Roster roster("server 0", 2, 3);
  CHECK(roster.update({3, false, {{0, "a"}}}).empty());
  CHECK(!roster.is_in_place());
  CHECK(roster.is_awaited(1));
  CHECK(!roster.hello({1, 1, 3, ""}));
  CHECK(text_of([&] { roster.require(1, 1, 2); }) == "trainer 1 comes with stale epoch 2, the job is at 3");
  CHECK(text_of([&] { roster.hello({2, 1, 4, ""}); }).starts_with("trainer 2 wants to join"));
}
