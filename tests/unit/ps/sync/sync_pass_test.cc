#include "ps/sync/sync_pass.h"

#include <doctest/doctest.h>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::text_of;

namespace {

void push(SyncPass& pass, std::uint32_t trainer, std::uint32_t thread) {
  pass.push({{trainer, thread}, std::make_unique<wire::PushRequest>(), [](Outcome) {}});
}

}  // namespace

TEST_CASE("a step holds the pushes in the order of trainers and threads") {
  SyncPass pass;
  pass.begin({{0, 2}, {2, 1}});
  push(pass, 2, 0);
  push(pass, 0, 1);
  CHECK(pass.take_complete().empty());
  push(pass, 0, 0);
  const auto step = pass.take_complete();
  REQUIRE(step.size() == 3);
  CHECK(step[0].from == Participant{0, 0});
  CHECK(step[1].from == Participant{0, 1});
  CHECK(step[2].from == Participant{2, 0});
  CHECK(text_of([&] { push(pass, 0, 1); }) == "trainer 0, thread 1 pushes twice in one step");
  pass.finish(step);
  push(pass, 0, 1);
}

TEST_CASE("those who left are not waited for, and an empty pass has no steps") {
  SyncPass pass;
  CHECK(pass.take_complete().empty());
  pass.begin({{0, 1}, {1, 2}});
  push(pass, 0, 0);
  pass.leave({1, 0});
  CHECK(pass.take_complete().empty());
  pass.leave_all(1);
  CHECK(pass.take_complete().size() == 1);
  CHECK(text_of([&] { push(pass, 1, 0); }) == "trainer 1, thread 0 pushes, but has not joined the epoch");
  pass.leave({0, 0});
  CHECK(pass.take_complete().empty());
}

TEST_CASE("giving up returns those who wait and ends the pass") {
  SyncPass pass;
  pass.begin({{0, 2}});
  push(pass, 0, 0);
  CHECK(pass.give_up().size() == 1);
  CHECK(text_of([&] { push(pass, 0, 0); }) == "trainer 0, thread 0 pushes, but has not joined the epoch");
}

TEST_CASE(
    "who comes in the middle of a pass is waited for from the next step on; who leaves whole is answered") {
  SyncPass pass;
  CHECK(!pass.is_under_way());
  pass.begin({{0, 1}});
  CHECK(pass.is_under_way());
  push(pass, 0, 0);
  pass.finish(pass.take_complete());
  pass.join(1, 2);
  push(pass, 0, 0);
  push(pass, 1, 0);
  CHECK(pass.take_complete().empty());
  CHECK(pass.leave_all(1).size() == 1);
  CHECK(pass.take_complete().size() == 1);
}

TEST_CASE("steps are counted by thread, also of those who have left, until the next pass") {
  SyncPass pass;
  pass.begin({{0, 1}, {1, 2}});
  CHECK(pass.steps(1) == std::vector<std::uint64_t>{0, 0});
  push(pass, 0, 0);
  push(pass, 1, 0);
  push(pass, 1, 1);
  const auto step = pass.take_complete();
  CHECK(pass.steps(1) == std::vector<std::uint64_t>{1, 1});
  pass.finish(step);
  pass.leave({1, 0});
  push(pass, 0, 0);
  push(pass, 1, 1);
  pass.finish(pass.take_complete());
  CHECK(pass.steps(1) == std::vector<std::uint64_t>{1, 2});
  CHECK(pass.steps(2).empty());
  pass.begin({{0, 1}, {1, 1}});
  CHECK(pass.steps(1) == std::vector<std::uint64_t>{0});
}

TEST_CASE("who goes on for another has all its threads, and what that one pushed in this step is dropped") {
  SyncPass pass;
  pass.begin({{0, 1}, {1, 2}});
  pass.leave({1, 0});
  push(pass, 1, 1);
  CHECK(pass.take_over(1).size() == 1);
  CHECK(pass.take_over(1).empty());
  push(pass, 0, 0);
  push(pass, 1, 1);
  CHECK(pass.take_complete().empty());
  push(pass, 1, 0);
  CHECK(pass.take_complete().size() == 3);
  CHECK(pass.take_over(1).empty());  // what is being applied counts
  CHECK(pass.steps(1) == std::vector<std::uint64_t>{1, 1});
}

TEST_CASE("a pass that was written is read again, with the steps that are in the tables") {
  SyncPass pass;
  pass.begin({{0, 1}, {1, 1}});
  for (int step = 0; step < 2; ++step) {
    push(pass, 0, 0);
    push(pass, 1, 0);
    const auto taken = pass.take_complete();
    if (step == 0) pass.count({{0, 0}, {1, 0}, {2, 0}});
    pass.finish(taken);
  }
  pass.leave({1, 0});
  Bytes bytes;
  pass.write(bytes);
  SyncPass again;
  again.begin({{5, 5}});
  Reader reader(bytes.bytes());
  again.read(reader);
  CHECK(reader.remaining() == 0);
  CHECK(again.steps(0) == std::vector<std::uint64_t>{1});
  CHECK(again.steps(5).empty());
  again.count({{0, 0}, {1, 0}});
  CHECK(again.steps(1) == std::vector<std::uint64_t>{2});
  push(again, 0, 0);
  CHECK(again.take_complete().size() == 1);
}
