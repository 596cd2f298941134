#include "ps/sync/trainer_registry.h"

#include <doctest/doctest.h>

#include "tests/support/ps_tables.h"

using fleetrun::ps::TrainerRegistry;
using fleetrun::tests::text_of;

TEST_CASE("a trainer comes, is required, and goes") {
  TrainerRegistry trainer_registry("server 3", 2);
  CHECK(text_of([&] { trainer_registry.require(0, 7); }) ==
        "trainer 0 is not known to server 3; was the server started again?");
  trainer_registry.hello(0, 7);
  trainer_registry.hello(0, 7);
  trainer_registry.require(0, 7);
  CHECK(trainer_registry.is_here(0));
  CHECK(text_of([&] { trainer_registry.require(0, 8); }) ==
        "trainer 0 is not known to server 3; was the server started again?");
  trainer_registry.goodbye(0);
  CHECK(text_of([&] { trainer_registry.require(0, 7); }) == "trainer 0 has said goodbye to server 3 already");
  CHECK(!trainer_registry.are_all_done());
  trainer_registry.hello(1, 1);
  trainer_registry.goodbye(1);
  CHECK(trainer_registry.are_all_done());
}

TEST_CASE("ranks beyond the job and ranks that are taken are refused") {
  TrainerRegistry trainer_registry("server 0", 2);
  CHECK(text_of([&] { trainer_registry.hello(2, 1); }) ==
        "trainer 2 wants to join, but server 0 expects 2 trainers, with ranks from 0");
  CHECK(text_of([&] { trainer_registry.require(2, 1); }) ==
        "trainer 2 is not known to server 0; was the server started again?");
  trainer_registry.hello(1, 1);
  CHECK(text_of([&] { trainer_registry.hello(1, 2); }) == "trainer 1 is connected to server 0 already");
}

TEST_CASE("a trainer that was killed while it connected holds its rank against nobody") {
  TrainerRegistry trainer_registry("server 0", 2);
  const fleetrun::ps::Newcomer first{.trainer = 1, .incarnation = 1, .connection = 5};
  const fleetrun::ps::Newcomer second{.trainer = 1, .incarnation = 2, .connection = 6};
  // Its connection ended before its hello was handled, or before it attended: nobody heard of that.
  CHECK(!trainer_registry.leave_for_now(1, 1, 5));
  trainer_registry.hello(first);
  CHECK(trainer_registry.succeeds(second));
  trainer_registry.hello(second);
  trainer_registry.attend(1);
  CHECK(trainer_registry.is_here_by(1, 2, 6));
  CHECK(!trainer_registry.succeeds(first));
  CHECK(text_of([&] { trainer_registry.hello(first); }) == "trainer 1 is connected to server 0 already");
  // The end of each connection is heard of by itself.
  trainer_registry.hello({.trainer = 1, .incarnation = 2, .connection = 7});
  CHECK(trainer_registry.succeeds(first));
}

TEST_CASE("only the incarnation that is here can be lost, and another may follow it") {
  TrainerRegistry trainer_registry("server 0", 2);
  CHECK(!trainer_registry.lose(0, 1));
  CHECK(!trainer_registry.lose(9, 1));
  trainer_registry.hello(1, 1);
  CHECK(!trainer_registry.lose(1, 2));
  CHECK(!trainer_registry.lost());
  CHECK(trainer_registry.lose(1, 1));
  CHECK(trainer_registry.lost() == 1u);
  CHECK(text_of([&] { trainer_registry.require(1, 1); }) == "server 0 has lost its connection to trainer 1");
  trainer_registry.hello(1, 2);
  CHECK(!trainer_registry.lost());
}

namespace {

fleetrun::ps::MembershipUpdate world(std::uint64_t generation,
                                     std::map<std::uint32_t, std::string> trainers) {
  return {generation, true, std::move(trainers)};
}

constexpr const char* kStale = "trainer 1 comes with stale epoch 3, the job is at ";

}  // namespace

TEST_CASE("a trainer that was taken for lost and wakes up is refused, whatever it does") {
  TrainerRegistry trainer_registry("server 0", 2, 3);
  CHECK(trainer_registry.update(world(3, {{0, "a"}, {1, "b"}})).empty());
  CHECK(!trainer_registry.hello({0, 10, 3, "a"}));
  CHECK(!trainer_registry.hello({1, 11, 3, "b"}));
  CHECK(trainer_registry.update(world(5, {{0, "a"}})) == std::vector<std::uint32_t>{1});
  CHECK(text_of([&] { trainer_registry.require(1, 11, 3); }) == kStale + std::string("5"));
  CHECK(text_of([&] { trainer_registry.hello({1, 12, 3, "b"}); }) == kStale + std::string("5"));
  CHECK(!trainer_registry.lose(1, 11));
  // Its own launcher has told it nothing, or what it says is not believed.
  CHECK(
      text_of([&] { trainer_registry.require(1, 11, 5); }).starts_with("trainer 1 comes with stale epoch 5"));
  // The survivor goes on, though it has not heard of the new world yet.
  trainer_registry.require(0, 10, 3);
  CHECK(trainer_registry.is_awaited(0));
  CHECK(!trainer_registry.is_awaited(1));
}

TEST_CASE(
    "the new holder of a rank is let in, the old one is not, and nobody waits before the new one has come") {
  TrainerRegistry trainer_registry("server 0", 2, 3);
  trainer_registry.update(world(3, {{0, "a"}, {1, "b"}}));
  trainer_registry.hello({0, 10, 3, "a"});
  trainer_registry.hello({1, 11, 3, "b"});
  trainer_registry.update(world(4, {{0, "a"}}));
  CHECK(trainer_registry.update(world(6, {{0, "a"}, {1, "c"}})).empty());
  CHECK(!trainer_registry.is_awaited(1));
  CHECK(!trainer_registry.are_all_done());
  CHECK(text_of([&] { trainer_registry.hello({1, 12, 3, "b"}); }) == kStale + std::string("6"));
  CHECK(trainer_registry.hello({1, 13, 6, "c"}));
  CHECK(!trainer_registry.is_awaited(1));
  trainer_registry.join(1);
  CHECK(trainer_registry.is_awaited(1));
  trainer_registry.require(1, 13, 6);
  CHECK(text_of([&] { trainer_registry.require(1, 11, 3); }) == kStale + std::string("6"));
}

TEST_CASE("a rank may change hands in one step, and its old holder is gone") {
  TrainerRegistry trainer_registry("server 0", 2, 3);
  trainer_registry.update(world(3, {{0, "a"}, {1, "b"}}));
  trainer_registry.hello({1, 11, 3, "b"});
  CHECK(trainer_registry.update(world(4, {{0, "a"}, {1, "c"}})) == std::vector<std::uint32_t>{1});
  CHECK(text_of([&] { trainer_registry.require(1, 11, 3); }) == kStale + std::string("4"));
  CHECK(text_of([&] {
          trainer_registry.hello({1, 14, 4, "b"});
        }) == "trainer 1 belongs to another host in epoch 4");
  CHECK(trainer_registry.hello({1, 13, 4, "c"}));
}

TEST_CASE("a trainer that knows a newer world than the server is believed, and fences the one before it") {
  TrainerRegistry trainer_registry("server 0", 2, 3);
  trainer_registry.update(world(3, {{0, "a"}, {1, "b"}}));
  trainer_registry.hello({1, 11, 3, "b"});
  CHECK(trainer_registry.hello({1, 12, 5, "c"}));
  CHECK(text_of([&] { trainer_registry.require(1, 11, 3); }) == kStale + std::string("5"));
  CHECK(trainer_registry.hello({2, 20, 5, "c"}));
  CHECK(trainer_registry.trainers() == 3);
  // The world comes after all; and an older one that was on its way, too.
  CHECK(trainer_registry.update(world(4, {{0, "a"}})).empty());
  CHECK(trainer_registry.update(world(5, {{0, "d"}, {1, "c"}, {2, "c"}})) == std::vector<std::uint32_t>{0});
  CHECK(trainer_registry.update(world(4, {})).empty());
  trainer_registry.require(1, 12, 5);
  trainer_registry.require(2, 20, 5);
}

TEST_CASE("a trainer that is done stays done, and the others being gone is the end") {
  TrainerRegistry trainer_registry("server 0", 3, 1);
  trainer_registry.update(world(1, {{0, "a"}, {1, "b"}, {2, "c"}}));
  for (std::uint32_t t = 0; t < 3; ++t)
    trainer_registry.hello({t, 1, 1, std::string(1, static_cast<char>('a' + t))});
  trainer_registry.goodbye(0);
  trainer_registry.update(world(2, {{1, "b"}, {2, "c"}}));
  CHECK(!trainer_registry.are_all_done());
  trainer_registry.update(world(3, {{2, "c"}}));
  CHECK(!trainer_registry.are_all_done());
  trainer_registry.goodbye(2);
  CHECK(trainer_registry.are_all_done());
  // One that is to come is waited for.
  trainer_registry.update(world(4, {{2, "c"}, {1, "d"}}));
  CHECK(!trainer_registry.are_all_done());
}

TEST_CASE("in a job that is started again instead, worlds change nothing but ranks beyond it stay refused") {
  TrainerRegistry trainer_registry("server 0", 2, 3);
  CHECK(trainer_registry.update({3, false, {{0, "a"}}}).empty());
  CHECK(!trainer_registry.is_in_place());
  CHECK(trainer_registry.is_awaited(1));
  CHECK(!trainer_registry.hello({1, 1, 3, ""}));
  CHECK(text_of([&] { trainer_registry.require(1, 1, 2); }) ==
        "trainer 1 comes with stale epoch 2, the job is at 3");
  CHECK(text_of([&] { trainer_registry.hello({2, 1, 4, ""}); }).starts_with("trainer 2 wants to join"));
}
