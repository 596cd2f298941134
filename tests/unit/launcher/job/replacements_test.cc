#include "launcher/job/replacements.h"

#include <doctest/doctest.h>

namespace fleetrun::launcher {
namespace {

using What = MemberSaid::What;

/// Three trainers, 0 to 2, and one process that stands by, 3: all have started, the trainers train.
Replacements training() {
  Replacements members({0, 1, 2}, {3});
  for (std::size_t index = 0; index < 4; ++index) members.started(index);
  for (std::size_t index = 0; index < 3; ++index) members.heard({.index = index, .what = What::trains});
  members.heard({.index = 3, .what = What::waits});
  return members;
}

void leave(Replacements& members, std::initializer_list<std::size_t> indices, int generation,
           std::int64_t step) {
  for (const std::size_t index : indices)
    members.heard({.index = index, .what = What::leaves, .generation = generation, .step = step});
}

TEST_CASE("who stands by takes the seat once everybody has left the generation") {
  Replacements members = training();
  CHECK(members.lose(1));
  CHECK(members.stands_by(1));
  CHECK_FALSE(members.next());
  leave(members, {0}, 0, 7);
  CHECK_FALSE(members.next());  // 2 has not heard yet
  leave(members, {2}, 0, 8);
  const auto began = members.next();
  REQUIRE(began);
  CHECK(began->generation == 1);
  CHECK(began->step == 8);
  CHECK(began->seats == std::vector<std::size_t>{0, 3, 2});
  CHECK(began->newcomers == std::vector<int>{1});
  REQUIRE(began->replaced.size() == 1);
  CHECK(began->replaced[0].lost == 1);
  CHECK(began->replaced[0].by == 3);
  CHECK_FALSE(members.stands_by(3));
  CHECK_FALSE(members.is_pending());
  CHECK_FALSE(members.next());
}

TEST_CASE("a seat waits for a process that is still on its way, the lost one started again, too") {
  Replacements members({0, 1}, {});
  for (const std::size_t index : {0, 1}) {
    members.started(index);
    members.heard({.index = index, .what = What::trains});
  }
  CHECK(members.lose(0));
  leave(members, {1}, 0, 3);
  CHECK_FALSE(members.next());
  members.started(0);
  CHECK_FALSE(members.next());
  members.heard({.index = 0, .what = What::waits});
  const auto began = members.next();
  REQUIRE(began);
  CHECK(began->seats == std::vector<std::size_t>{0, 1});
  CHECK(began->newcomers == std::vector<int>{0});
}

TEST_CASE("a loss within a meeting is met by the next one, and newcomers stay new until they train") {
  Replacements members = training();
  CHECK(members.lose(1));
  leave(members, {0, 2}, 0, 5);
  REQUIRE(members.next());
  members.started(1);
  members.heard({.index = 1, .what = What::waits});
  CHECK(members.lose(2));
  leave(members, {0, 3}, 0, 5);  // of the generation before: too old to count
  CHECK_FALSE(members.next());
  leave(members, {0}, 1, 5);
  leave(members, {3}, 1, -1);
  const auto began = members.next();
  REQUIRE(began);
  CHECK(began->generation == 2);
  CHECK(began->step == 5);
  CHECK(began->seats == std::vector<std::size_t>{0, 3, 1});
  CHECK(began->newcomers == std::vector<int>{1, 2});
}

TEST_CASE("the job fails where nobody has the state, or a trainer has ended its work") {
  Replacements early({0, 1}, {2});
  for (std::size_t index = 0; index < 3; ++index) early.started(index);
  CHECK_FALSE(early.lose(0));  // nobody trains yet
  CHECK(early.why_not() == "no other trainer has the state of the training (fleetrun.torch.recoverable)");

  Replacements all = training();
  CHECK(all.lose(0));
  CHECK(all.lose(1));
  CHECK_FALSE(all.lose(2));

  Replacements late = training();
  CHECK(late.finish(0));
  CHECK_FALSE(late.lose(1));
  CHECK(late.why_not() == "another trainer has ended its work");

  Replacements waiting = training();
  CHECK(waiting.lose(1));
  CHECK_FALSE(waiting.finish(0));
  CHECK(waiting.lost() == 1);
}

TEST_CASE("a step that nobody survives is not taken for ever") {
  Replacements members = training();
  std::size_t spare = 3, lost = 1;
  for (int generation = 0; generation < 4; ++generation) {
    REQUIRE(members.lose(lost));
    leave(members, {0, 2}, generation, 9);
    REQUIRE(members.next());
    members.heard({.index = spare, .what = What::trains});
    members.started(lost);
    members.heard({.index = lost, .what = What::waits});
    std::swap(spare, lost);
  }
  CHECK_FALSE(members.lose(lost));
  CHECK(members.why_not() == "a trainer was lost in step 9 each time");
}

TEST_CASE("one that fails at its start again and again does not stand by any more") {
  Replacements members({0, 1}, {2});
  members.started(2);
  CHECK(members.lose(2));
  members.started(2);
  CHECK(members.lose(2));
  members.started(2);
  CHECK_FALSE(members.lose(2));

  Replacements ready({0, 1}, {2});
  for (int i = 0; i < 5; ++i) {
    ready.started(2);
    ready.heard({.index = 2, .what = What::waits});
    CHECK(ready.lose(2));  // it was killed while it waited
  }
}

TEST_CASE("all are where they were at the start of an attempt") {
  Replacements members = training();
  CHECK(members.lose(1));
  leave(members, {0, 2}, 0, 5);
  REQUIRE(members.next());
  members.begin_attempt();
  CHECK(members.stands_by(3));
  CHECK_FALSE(members.stands_by(1));
  CHECK_FALSE(members.is_pending());
}

}  // namespace
}  // namespace fleetrun::launcher
