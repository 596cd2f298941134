#include "ps/sync/sync_epoch.h"

#include <doctest/doctest.h>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::text_of;

namespace {

void push(SyncEpoch& epoch, std::uint32_t trainer, std::uint32_t thread) {
  epoch.push({{trainer, thread}, std::make_unique<wire::PushRequest>(), [](Outcome) {}});
}

}  // namespace

TEST_CASE("a step holds the pushes in the order of trainers and threads") {
  SyncEpoch epoch;
  epoch.begin({{0, 2}, {2, 1}});
  push(epoch, 2, 0);
  push(epoch, 0, 1);
  CHECK(epoch.take_complete().empty());
  push(epoch, 0, 0);
  const auto step = epoch.take_complete();
  REQUIRE(step.size() == 3);
  CHECK(step[0].from == Participant{0, 0});
  CHECK(step[1].from == Participant{0, 1});
  CHECK(step[2].from == Participant{2, 0});
  CHECK(text_of([&] { push(epoch, 0, 1); }) == "trainer 0, thread 1 pushes twice in one step");
  epoch.finish(step);
  push(epoch, 0, 1);
}

TEST_CASE("those who left are not waited for, and an empty pass has no steps") {
  SyncEpoch epoch;
  CHECK(epoch.take_complete().empty());
  epoch.begin({{0, 1}, {1, 2}});
  push(epoch, 0, 0);
  epoch.leave({1, 0});
  CHECK(epoch.take_complete().empty());
  epoch.leave_all(1);
  CHECK(epoch.take_complete().size() == 1);
  CHECK(text_of([&] { push(epoch, 1, 0); }) == "trainer 1, thread 0 pushes, but has not joined the epoch");
  epoch.leave({0, 0});
  CHECK(epoch.take_complete().empty());
}

TEST_CASE("who waits may be dropped and push again; nobody takes part in an epoch that has ended") {
  SyncEpoch epoch;
  epoch.begin({{0, 2}});
  push(epoch, 0, 0);
  CHECK(epoch.drop_waits().size() == 1);
  CHECK(epoch.drop_waits().empty());
  push(epoch, 0, 0);
  CHECK(epoch.drop_waits().size() == 1);
  epoch.end();
  CHECK(text_of([&] { push(epoch, 0, 0); }) == "trainer 0, thread 0 pushes, but has not joined the epoch");
}

TEST_CASE(
    "who comes in the middle of a pass is waited for from the next step on; who leaves whole is answered") {
  SyncEpoch epoch;
  CHECK(!epoch.is_under_way());
  epoch.begin({{0, 1}});
  CHECK(epoch.is_under_way());
  push(epoch, 0, 0);
  epoch.finish(epoch.take_complete());
  epoch.join(1, 2);
  push(epoch, 0, 0);
  push(epoch, 1, 0);
  CHECK(epoch.take_complete().empty());
  CHECK(epoch.leave_all(1).size() == 1);
  CHECK(epoch.take_complete().size() == 1);
}

TEST_CASE("steps are counted by thread, also of those who have left, until the next pass") {
  SyncEpoch epoch;
  epoch.begin({{0, 1}, {1, 2}});
  CHECK(epoch.steps(1) == std::vector<std::uint64_t>{0, 0});
  push(epoch, 0, 0);
  push(epoch, 1, 0);
  push(epoch, 1, 1);
  const auto step = epoch.take_complete();
  CHECK(epoch.steps(1) == std::vector<std::uint64_t>{1, 1});
  epoch.finish(step);
  epoch.leave({1, 0});
  push(epoch, 0, 0);
  push(epoch, 1, 1);
  epoch.finish(epoch.take_complete());
  CHECK(epoch.steps(1) == std::vector<std::uint64_t>{1, 2});
  CHECK(epoch.steps(2).empty());
  epoch.begin({{0, 1}, {1, 1}});
  CHECK(epoch.steps(1) == std::vector<std::uint64_t>{0});
}

TEST_CASE("who goes on for another has all its threads, and what that one pushed in this step is dropped") {
  SyncEpoch epoch;
  epoch.begin({{0, 1}, {1, 2}});
  epoch.leave({1, 0});
  push(epoch, 1, 1);
  CHECK(epoch.take_over(1).size() == 1);
  CHECK(epoch.take_over(1).empty());
  push(epoch, 0, 0);
  push(epoch, 1, 1);
  CHECK(epoch.take_complete().empty());
  push(epoch, 1, 0);
  CHECK(epoch.take_complete().size() == 3);
  CHECK(epoch.take_over(1).empty());  // what is being applied counts
  CHECK(epoch.steps(1) == std::vector<std::uint64_t>{1, 1});
}

TEST_CASE("a pass that was written is read again, with the steps that are in the tables") {
  SyncEpoch epoch;
  epoch.begin({{0, 1}, {1, 1}});
  for (int step = 0; step < 2; ++step) {
    push(epoch, 0, 0);
    push(epoch, 1, 0);
    const auto taken = epoch.take_complete();
    if (step == 0) epoch.count({{0, 0}, {1, 0}, {2, 0}});
    epoch.finish(taken);
  }
  epoch.leave({1, 0});
  Bytes bytes;
  epoch.write(bytes);
  SyncEpoch again;
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

TEST_CASE("a step is measured when everybody has come, to measure it or to push") {
  SyncEpoch epoch;
  int told = 0;
  const auto measure = [&](std::uint32_t trainer) {
    return epoch.measure({{trainer, 0}, std::make_unique<wire::PushRequest>(), [&told](Outcome) { ++told; }});
  };
  epoch.begin({{0, 1}, {1, 1}});
  CHECK(measure(0).empty());
  CHECK(epoch.measured().empty());
  CHECK(measure(0).size() == 1);  // who asks again has lost the answer to the first
  push(epoch, 1, 0);              // it had its answer from a server that was started again since
  CHECK(epoch.take_complete().empty());
  CHECK(epoch.measured().size() == 2);
  for (const Respond& respond : epoch.take_measuring()) respond(Message());
  CHECK(told == 1);
  CHECK(epoch.measured().empty());
  push(epoch, 0, 0);
  const auto step = epoch.take_complete();
  CHECK(step.size() == 2);
  // Of the next step, before this one is in the tables.
  CHECK(measure(0).empty());
  CHECK(measure(1).empty());
  CHECK(epoch.measured().empty());
  epoch.finish(step);
  CHECK(epoch.measured().size() == 2);
  CHECK(epoch.leave_all(0).size() == 1);
  CHECK(epoch.drop_waits().size() == 1);
  CHECK(text_of([&] { measure(0); }) == "trainer 0, thread 0 pushes, but has not joined the epoch");
}
