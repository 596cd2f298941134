#include "collective/base/call_board.h"

#include <doctest/doctest.h>

#include <thread>

#include "collective/store/memory_store.h"
#include "tests/support/errors.h"

using namespace fleetrun;
using namespace fleetrun::collective;
using fleetrun::tests::error_of;

namespace {

constexpr auto kAtOnce = Store::Clock::time_point::min();
const auto kNever = Store::Clock::time_point::max();

Place place(int rank, int size) {
  return {"world", rank, size};
}

}  // namespace

TEST_CASE("ranks that agree meet, each group by its own names") {
  MemoryStore store;
  for (const std::string group : {"a", "b"}) {
    CallBoard first(store, group, place(0, 2)), second(store, group, place(1, 2));
    std::thread other([&] { second.meet("NCCL 2.28", kNever); });
    CHECK_NOTHROW(first.meet("NCCL 2.28", kNever));
    other.join();
  }
}

TEST_CASE("the ranks that did not come are named") {
  MemoryStore store;
  CallBoard board(store, "a", place(1, 4));
  const Error error = error_of([&] { board.meet("x", kAtOnce); });
  CHECK(error.kind() == ErrorKind::timeout);
  CHECK(std::string(error.what()) == "group world of 4: rank 0, rank 2 and rank 3 did not come");
  CHECK(error.hint() == "look into the log of the first of them");
}

TEST_CASE("a rank that says another thing is named, with both things") {
  MemoryStore store;
  CallBoard first(store, "a", place(0, 2)), second(store, "a", place(1, 2));
  CHECK(error_of([&] { first.meet("NCCL 2.28", kAtOnce); }).kind() == ErrorKind::timeout);
  const Error error = error_of([&] { second.meet("NCCL 2.30", kNever); });
  CHECK(error.kind() == ErrorKind::config);
  CHECK(std::string(error.what()) == "group world: rank 0 has NCCL 2.28, rank 1 has NCCL 2.30");
  CHECK(error.hint() == "start all ranks with the same versions and settings");
}

TEST_CASE("rank 0's values are shared") {
  MemoryStore store;
  CallBoard first(store, "a", place(0, 2)), second(store, "a", place(1, 2));
  const std::string with_zero("i\0d", 3);
  CHECK(first.share("id", with_zero, kNever) == with_zero);
  CHECK(second.share("id", "", kNever) == with_zero);
}

TEST_CASE("who is behind is known from what was published") {
  MemoryStore store;
  CallBoard first(store, "a", place(0, 3)), second(store, "a", place(1, 3)), third(store, "a", place(2, 3));
  first.publish(7);
  second.publish(3);
  second.publish(6);
  third.publish(1);
  third.publish(1);  // nothing new
  CHECK(to_string(first.behind(7)) == "rank 1 (it has made 6 calls) and rank 2 (it has made 1 call)");
  CHECK(to_string(first.behind(2)) == "rank 2 (it has made 1 call)");
  CHECK(first.behind(1).empty());
}

TEST_CASE("of many ranks eight are named") {
  std::vector<CallBoard::Behind> many;
  for (int rank = 0; rank < 11; ++rank) many.push_back({rank, 2});
  const std::string text = to_string(many);
  CHECK(text.find("rank 7 (it has made 2 calls) and 3 more") != std::string::npos);
  CHECK(text.find("rank 8") == std::string::npos);
}

TEST_CASE("the first reason to end is everybody's") {
  MemoryStore store;
  CallBoard first(store, "a", place(0, 2)), second(store, "a", place(1, 2));
  CHECK_FALSE(first.aborted());
  second.abort(Error(ErrorKind::data, "line 1\nline 2", "a hint"));
  first.abort(Error(ErrorKind::network, "too late"));
  const std::optional<Error> why = first.aborted();
  REQUIRE(why);
  CHECK(why->kind() == ErrorKind::data);
  CHECK(std::string(why->what()) == "line 1\nline 2");
  CHECK(why->hint() == "a hint");
}
