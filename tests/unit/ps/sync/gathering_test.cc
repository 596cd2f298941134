#include "ps/sync/gathering.h"

#include <doctest/doctest.h>

using namespace fleetrun::ps;

TEST_CASE("a round is complete when all who are not done have arrived, in the order of rounds") {
  TrainerRegistry trainer_registry("server 0", 3);
  for (std::uint32_t t = 0; t < 3; ++t) trainer_registry.hello(t, 1);
  Gathering gathering;
  gathering.arrive(0, {{1.0}, {}});
  gathering.arrive(0, {{2.0}, {}});
  gathering.arrive(1, {{3.0}, {}});
  CHECK(!gathering.take_complete(trainer_registry));
  gathering.arrive(2, {{4.0}, {}});
  const auto first = gathering.take_complete(trainer_registry);
  REQUIRE(first);
  CHECK(first->at(0).values == std::vector<double>{1.0});
  CHECK(first->at(1).values == std::vector<double>{3.0});
  CHECK(!gathering.take_complete(trainer_registry));
  gathering.arrive(2, {{5.0}, {}});
  CHECK(!gathering.take_complete(trainer_registry));
  trainer_registry.goodbye(1);
  const auto second = gathering.take_complete(trainer_registry);
  REQUIRE(second);
  CHECK(second->size() == 2);
  CHECK(second->at(0).values == std::vector<double>{2.0});
}

TEST_CASE("giving up answers everyone who waits") {
  Gathering gathering;
  int answers = 0;
  for (const std::uint32_t t : {0u, 0u, 1u}) gathering.arrive(t, {{}, [&](Outcome) { ++answers; }});
  for (const auto& respond : gathering.give_up()) respond(Message());
  CHECK(answers == 3);
  CHECK(gathering.give_up().empty());
}

TEST_CASE("nobody waits for a trainer that came late before it has met the others once") {
  TrainerRegistry trainer_registry("server 0", 2, 1);
  trainer_registry.update({1, true, {{0, "a"}, {1, "b"}}});
  for (std::uint32_t t = 0; t < 2; ++t) trainer_registry.hello({t, 1, 1});
  Gathering gathering;
  trainer_registry.hello({2, 1, 2, "c"});
  gathering.arrive(0, {{1.0}, {}});
  gathering.arrive(1, {{2.0}, {}});
  CHECK(gathering.take_complete(trainer_registry));
  gathering.arrive(2, {{3.0}, {}});
  CHECK(!gathering.take_complete(trainer_registry));
  gathering.arrive(0, {{4.0}, {}});
  gathering.arrive(1, {{5.0}, {}});
  const auto round = gathering.take_complete(trainer_registry);
  REQUIRE(round);
  CHECK(round->at(2).values == std::vector<double>{3.0});
  trainer_registry.join(2);
  gathering.arrive(0, {{6.0}, {}});
  gathering.arrive(1, {{7.0}, {}});
  CHECK(!gathering.take_complete(trainer_registry));
}

TEST_CASE("who is dropped is answered and forgotten") {
  TrainerRegistry trainer_registry("server 0", 1);
  trainer_registry.hello(0, 1);
  Gathering gathering;
  int answers = 0;
  gathering.arrive(3, {{}, [&](Outcome) { ++answers; }});
  gathering.arrive(3, {{}, [&](Outcome) { ++answers; }});
  for (const Respond& respond : gathering.drop(3)) respond(Message());
  CHECK(answers == 2);
  CHECK(!gathering.take_complete(trainer_registry));
  gathering.arrive(0, {{1.0}, {}});
  const auto round = gathering.take_complete(trainer_registry);
  REQUIRE(round);
  CHECK(round->size() == 1);
}
