#include "ps/sync/barrier_rounds.h"

#include <doctest/doctest.h>

using namespace fleetrun::ps;

TEST_CASE("a round is complete when all who are not done have arrived, in the order of rounds") {
  TrainerRegistry trainer_registry("server 0", 3);
  for (std::uint32_t t = 0; t < 3; ++t) trainer_registry.hello(t, 1);
  BarrierRounds barrier_rounds;
  barrier_rounds.arrive(0, {{1.0}, {}});
  barrier_rounds.arrive(0, {{2.0}, {}});
  barrier_rounds.arrive(1, {{3.0}, {}});
  CHECK(!barrier_rounds.take_complete(trainer_registry));
  barrier_rounds.arrive(2, {{4.0}, {}});
  const auto first = barrier_rounds.take_complete(trainer_registry);
  REQUIRE(first);
  CHECK(first->at(0).values == std::vector<double>{1.0});
  CHECK(first->at(1).values == std::vector<double>{3.0});
  CHECK(!barrier_rounds.take_complete(trainer_registry));
  barrier_rounds.arrive(2, {{5.0}, {}});
  CHECK(!barrier_rounds.take_complete(trainer_registry));
  trainer_registry.goodbye(1);
  const auto second = barrier_rounds.take_complete(trainer_registry);
  REQUIRE(second);
  CHECK(second->size() == 2);
  CHECK(second->at(0).values == std::vector<double>{2.0});
}

TEST_CASE("giving up answers everyone who waits") {
  BarrierRounds barrier_rounds;
  int answers = 0;
  for (const std::uint32_t t : {0u, 0u, 1u}) barrier_rounds.arrive(t, {{}, [&](Outcome) { ++answers; }});
  for (const auto& respond : barrier_rounds.give_up()) respond(Message());
  CHECK(answers == 3);
  CHECK(barrier_rounds.give_up().empty());
}

TEST_CASE("nobody waits for a trainer that came late before it has met the others once") {
  TrainerRegistry trainer_registry("server 0", 2, 1);
  trainer_registry.update({1, true, {{0, "a"}, {1, "b"}}});
  for (std::uint32_t t = 0; t < 2; ++t) trainer_registry.hello({t, 1, 1});
  BarrierRounds barrier_rounds;
  trainer_registry.hello({2, 1, 2, "c"});
  barrier_rounds.arrive(0, {{1.0}, {}});
  barrier_rounds.arrive(1, {{2.0}, {}});
  CHECK(barrier_rounds.take_complete(trainer_registry));
  barrier_rounds.arrive(2, {{3.0}, {}});
  CHECK(!barrier_rounds.take_complete(trainer_registry));
  barrier_rounds.arrive(0, {{4.0}, {}});
  barrier_rounds.arrive(1, {{5.0}, {}});
  const auto round = barrier_rounds.take_complete(trainer_registry);
  REQUIRE(round);
  CHECK(round->at(2).values == std::vector<double>{3.0});
  trainer_registry.join(2);
  barrier_rounds.arrive(0, {{6.0}, {}});
  barrier_rounds.arrive(1, {{7.0}, {}});
  CHECK(!barrier_rounds.take_complete(trainer_registry));
}

TEST_CASE("who is dropped is answered and forgotten") {
  TrainerRegistry trainer_registry("server 0", 1);
  trainer_registry.hello(0, 1);
  BarrierRounds barrier_rounds;
  int answers = 0;
  barrier_rounds.arrive(3, {{}, [&](Outcome) { ++answers; }});
  barrier_rounds.arrive(3, {{}, [&](Outcome) { ++answers; }});
  for (const Respond& respond : barrier_rounds.drop(3)) respond(Message());
  CHECK(answers == 2);
  CHECK(!barrier_rounds.take_complete(trainer_registry));
  barrier_rounds.arrive(0, {{1.0}, {}});
  const auto round = barrier_rounds.take_complete(trainer_registry);
  REQUIRE(round);
  CHECK(round->size() == 1);
}
