#include "ps/sync/staleness_bound.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace fleetrun::ps;

namespace {

/// Writes down who may begin.
struct Race {
  StalenessBound staleness_bound;
  std::string begun;

  void run(std::vector<Respond> ready) {
    for (const Respond& respond : ready) respond(Message());
  }
  void begin(char name, std::uint64_t number, std::uint64_t bound) {
    run(staleness_bound.begin(
        {{static_cast<std::uint32_t>(name - 'a'), 0}, number, bound, [this, name](Outcome) {
           begun += name;
         }}));
  }
  void leave(char name) { run(staleness_bound.leave({static_cast<std::uint32_t>(name - 'a'), 0})); }
};

}  // namespace

TEST_CASE("a thread begins a step when the slowest is within its bound") {
  Race race;
  race.begin('a', 0, 2);
  race.begin('b', 0, 2);
  race.begin('a', 1, 2);
  race.begin('a', 2, 2);
  CHECK(race.begun == "abaa");
  race.begin('a', 3, 2);
  CHECK(race.begun == "abaa");
  race.begin('b', 1, 2);
  CHECK(race.begun == "abaaab");
}

TEST_CASE("nobody waits for a thread that has left, and a newcomer starts where the slowest is") {
  Race race;
  race.begin('a', 0, 1);
  race.begin('b', 0, 1);
  race.begin('a', 1, 1);
  race.begin('a', 2, 1);
  CHECK(race.begun == "aba");
  race.leave('b');
  CHECK(race.begun == "abaa");
  for (std::uint64_t step = 3; step < 100; ++step) race.begin('a', step, 1);
  race.begun.clear();
  race.begin('c', 0, 1);
  race.begin('a', 100, 1);
  CHECK(race.begun == "ca");
  race.begin('a', 101, 1);
  CHECK(race.begun == "ca");
  race.run(race.staleness_bound.leave_all(2));
  CHECK(race.begun == "caa");
}

TEST_CASE("leaving and coming back does not add to a lead, and all start even when nobody is under way") {
  Race race;
  race.begin('a', 0, 2);
  race.begin('b', 0, 2);
  race.begin('a', 1, 2);
  race.begin('a', 2, 2);
  race.leave('a');
  race.begun.clear();
  race.begin('a', 0, 2);  // it left when it was two ahead: this one would be the third
  CHECK(race.begun.empty());
  race.begin('b', 1, 2);
  CHECK(race.begun == "ab");
  race.begin('a', 1, 2);
  CHECK(race.begun == "ab");
  race.leave('a');
  race.leave('b');
  race.begun.clear();
  race.begin('b', 0, 0);
  race.begin('a', 0, 0);
  CHECK(race.begun == "ba");
  race.begin('c', 0, 0);
  race.begin('b', 1, 0);
  CHECK(race.begun == "bac");
}

TEST_CASE("at the end everyone who waits is known") {
  Race race;
  race.begin('a', 0, 0);
  race.begin('b', 0, 0);
  race.begin('a', 1, 0);
  CHECK(race.staleness_bound.give_up().size() == 1);
  CHECK(race.staleness_bound.give_up().empty());
}
