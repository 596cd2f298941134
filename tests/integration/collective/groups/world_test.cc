// Ranks of one host that meet, as threads and as processes:
// groups, names, what they disagree on, deaths and survivors.
#include "collective/groups/world.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <array>
#include <atomic>

#include "collective/store/store.h"
#include "runtime/base/error.h"
#include "tests/support/child_process.h"
#include "tests/support/errors.h"
#include "tests/support/rank_threads.h"
#include "tests/support/world_job.h"

using namespace fleetrun;
using namespace fleetrun::collective;
using namespace std::chrono_literals;
using tests::contains;
using tests::error_of;
using tests::run_ranks;

namespace {

using Clock = Store::Clock;

using Job = tests::WorldJob;

/// The sum of `value` over the ranks.
float sum(Communicator& communicator, float value) {
  all_reduce(communicator, Buffer{&value, 1, DataType::float32}, Operation::sum);
  return value;
}

/// Nobody leaves before all are here: rank 0 has the store.
void leave_together(World& world, const std::string& name) {
  world.store().add(name, 1);
  world.store().set(name + std::to_string(world.rank()), "");
  for (int rank = 0; rank < world.size(); ++rank)
    world.store().wait(name + std::to_string(rank), Clock::now() + 20s);
}

}  // namespace

TEST_CASE("all ranks form a group; some form another, renumbered in the order that is asked for") {
  const Job job;
  run_ranks(4, [&](int rank) {
    const auto world = World::join(job.options(rank, 4));
    CHECK(world->rank() == rank);
    CHECK(world->hosts() == std::vector<std::string>(4, world->hosts()[0]));
    const auto all = world->make_communicator("all");
    CHECK(sum(*all, static_cast<float>(rank)) == 6);
    if (rank != 2) {
      const auto three = world->make_communicator("three", {3, 0, 1});
      CHECK(three->place().rank == (rank == 3 ? 0 : rank + 1));
      std::array<std::int32_t, 1> from{rank};
      broadcast(*three, {from.data(), 1, DataType::int32}, 0);
      CHECK(from[0] == 3);
    }
    const auto work = all->start({.kind = CallKind::barrier});
    work->wait();
    leave_together(*world, "leave");
  });
}

TEST_CASE("a world of one needs nobody") {
  const auto world = World::join({});
  const auto alone = world->make_communicator("alone");
  CHECK(sum(*alone, 5) == 5);
  CHECK(world->survivors("still alone")->place().size == 1);
  CHECK(world->lost().empty());
}

TEST_CASE("a group that cannot be is refused by name, on the rank that asks for it") {
  const auto world = World::join({});
  const auto first = world->make_communicator("g");
  CHECK(contains(error_of([&] { world->make_communicator("g"); }).what(),
                 "group g: there has been one of this name"));
  CHECK(contains(error_of([&] {
                   world->make_communicator("h", {0, 0});
                 }).what(),
                 "group h: a rank is in it twice"));
  CHECK(contains(error_of([&] {
                   world->make_communicator("h", {0, 1});
                 }).what(),
                 "rank 1 is not in a world of 1"));
  CHECK(contains(error_of([&] { World::join({.rank = 3, .size = 2}); }).what(),
                 "3 is not a rank of a world of 2"));
}

TEST_CASE("ranks that want groups of one name to be different are told") {
  const Job job;
  std::atomic<int> refused = 0;
  run_ranks(2, [&](int rank) {
    WorldOptions options = job.options(rank, 2);
    options.meet_within = 2s;  // of the one that the store has not refused
    const auto world = World::join(options);
    const Error error = error_of([&] {
      world->make_communicator("g", rank == 0 ? std::vector<int>{0, 1} : std::vector<int>{1, 0});
    });
    if (contains(error.what(), "the ranks disagree on world/g/shape: 'ranks")) ++refused;
    leave_together(*world, "leave");
  });
  CHECK(refused == 1);
}

TEST_CASE("ranks that never come are named at the deadline, on all that came") {
  const Job job;
  run_ranks(2, [&](int rank) {
    WorldOptions options = job.options(rank, 4);
    options.meet_within =
        std::chrono::milliseconds(500 + 500 * rank);  // rank 0 gives up first, and takes the store along
    const Error error = error_of([&] { World::join(options); });
    CHECK(error.kind() == ErrorKind::timeout);
    CHECK(contains(error.what(), "rank 2, rank 3 have not come within "));
  });
}

TEST_CASE("ranks meet within the time of their first call, or the one that is said") {
  const Job job;
  run_ranks(2, [&](int rank) {
    const auto world = World::join(job.options(rank, 2));
    const std::vector<CommunicatorOptions> each = {{.call_within = 50ms},
                                                   {.call_within = 5min, .meet_within = 50ms}};
    for (std::size_t i = 0; rank == 0 && i < each.size(); ++i) {
      const Error error =
          error_of([&] { world->make_communicator("alone" + std::to_string(i), {}, each[i]); });
      CHECK(error.kind() == ErrorKind::timeout);
      CHECK(contains(error.what(), "rank 1 did not come in time"));
    }
    leave_together(*world, "leave");
  });
}

TEST_CASE("a rank with another secret is told so, and those that came go on waiting for the right one") {
  const Job job;
  run_ranks(3, [&](int index) {
    if (index < 2) {
      CHECK(sum(*World::join(job.options(index, 2))->make_communicator("all"), 1) == 2);
    } else {
      WorldOptions wrong = job.options(1, 2);
      wrong.access = {Secret::random(), "/other/secret"};
      const Error error = error_of([&] { World::join(wrong); });
      // The others may be done before it comes.
      CHECK((error.kind() == ErrorKind::config || error.kind() == ErrorKind::network));
    }
  });
}

TEST_CASE(
    "what fails on one rank fails on all ranks of its group, with the same words, and other groups go on") {
  const Job job;
  run_ranks(3, [&](int rank) {
    const auto world = World::join(job.options(rank, 3));
    const auto one = world->make_communicator("one");
    const auto other = world->make_communicator("other");
    if (rank == 1) {
      one->abort(Error(ErrorKind::usage, "rank 1 has had enough"));
    }
    const Error error = error_of([&] {
      for (;;) sum(*one, 1);
    });
    CHECK(contains(error.what(), "rank 1 has had enough"));
    CHECK(sum(*other, 1) == 3);
    leave_together(*world, "leave");
  });
}

TEST_CASE("a rank that is killed within a call is named by all others, which go on without it") {
  constexpr int kRanks = 4;
  for (const int victim : {1, 3}) {
    const Job job;
    const tests::ChildProcess child([&](int) {
      const auto world = World::join(job.options(victim, kRanks));
      const auto all = world->make_communicator("all");
      sum(*all, 1);
      world->store().set("here", "");
      world->store().wait("never", Clock::now() + 60s);
    });
    run_ranks(kRanks, [&](int rank) {
      if (rank == victim) return;
      const auto world = World::join(job.options(rank, kRanks));
      const auto all = world->make_communicator("all");
      sum(*all, 1);
      if (rank == 0) {
        world->store().wait("here", Clock::now() + 20s);
        child.signal(SIGKILL);
      }
      const Error error = error_of([&] { sum(*all, 1); });
      CHECK(error.kind() == ErrorKind::network);
      CHECK(contains(error.what(), "group all: rank " + std::to_string(victim)));
      const auto rest = world->survivors("rest");
      CHECK(world->lost() == std::vector<int>{victim});
      CHECK(rest->place().size == kRanks - 1);
      CHECK(rest->place().rank == (rank > victim ? rank - 1 : rank));
      CHECK(sum(*rest, static_cast<float>(rank)) == static_cast<float>(6 - victim));
      barrier(*rest);
      world->store().set("done/" + std::to_string(rank), "");
      for (int other = 0; other < kRanks; ++other)
        if (other != victim) world->store().wait("done/" + std::to_string(other), Clock::now() + 20s);
    });
  }
}

TEST_CASE("a rank that is killed while a group forms is named by all others long before the deadline") {
  for (const Transport transport : {Transport::shared_memory, Transport::gloo}) {
    for (const int victim : {0, 1, 2}) {
      const Job job;
      const tests::ChildProcess child([&](int) {
        const auto world = World::join(job.options(victim, 3));
        for (int rank = 0; rank < 3; ++rank)
          if (rank != victim) world->store().wait("here" + std::to_string(rank), Clock::now() + 20s);
        ::raise(SIGKILL);
      });
      run_ranks(3, [&](int rank) {
        if (rank == victim) return;
        const auto world = World::join(job.options(rank, 3));
        const auto begun = Clock::now();
        world->store().set("here" + std::to_string(rank), "");
        const Error error = error_of([&] {
          world->make_communicator("all", {}, {.hierarchical = {}, .inner_size = 0, .transport = transport});
        });
        CHECK(error.kind() == ErrorKind::network);
        CHECK(contains(error.what(), "rank " + std::to_string(victim)));
        CHECK(Clock::now() - begun < 15s);
        if (victim == 0) return;  // with the store
        world->store().set("done" + std::to_string(rank), "");
        world->store().wait("done" + std::to_string(3 - victim - rank), Clock::now() + 20s);
      });
    }
  }
}

TEST_CASE("groups fail by what their names begin with: those that are, and those that ranks meet for") {
  const Job job;
  run_ranks(2, [&](int rank) {
    const auto world = World::join(job.options(rank, 2));
    const auto made = world->make_communicator("pair/made"), other = world->make_communicator("pairs");
    const auto start = Clock::now();
    if (rank == 1) world->fail("pair/", Error(ErrorKind::network, "rank 1 has had enough"));
    for (const char* name : {"pair/to come", "pair/later"})
      CHECK(contains(error_of([&] { world->make_communicator(name, {1, 0}); }).what(), "has had enough"));
    CHECK(contains(error_of([&] { sum(*made, 1); }).what(), "has had enough"));
    CHECK(Clock::now() - start < 10s);
    CHECK(sum(*other, 1) == 2);
    leave_together(*world, "leave");
  });
}

TEST_CASE("a meeting ends where somebody knows that a rank will not come") {
  const Job job;
  run_ranks(2, [&](int rank) {
    WorldOptions options = job.options(rank, 3);
    int asked = 0;
    options.concern = [&] {
      if (++asked > 3) throw Error(ErrorKind::network, "rank 2 will not come");
    };
    const auto begun = Clock::now();
    CHECK(contains(error_of([&] { World::join(options); }).what(), "rank 2 will not come"));
    CHECK(Clock::now() - begun < 15s);
  });
}

TEST_CASE("the death of rank 0 ends every group that it is in, and nobody goes on without the store") {
  const Job job;
  const tests::ChildProcess child([&](int) {
    const auto world = World::join(job.options(0, 3));
    const auto all = world->make_communicator("all");
    sum(*all, 1);
    world->store().wait("never", Clock::now() + 60s);
  });
  run_ranks(2, [&](int index) {
    const auto world = World::join(job.options(index + 1, 3));
    const auto all = world->make_communicator("all");
    const auto two = world->make_communicator("two", {1, 2});
    sum(*all, 1);
    sum(*two, 1);
    if (index == 0) child.signal(SIGKILL);
    const Error error = error_of([&] { sum(*all, 1); });
    CHECK(error.kind() == ErrorKind::network);
    CHECK(contains(error.what(), "group all: rank 0"));
    CHECK(sum(*two, 1) == 2);
    CHECK(error_of([&] { world->survivors("rest"); }).kind() == ErrorKind::network);
    CHECK(sum(*two, 1) == 2);
    CHECK(world->lost() == std::vector<int>{0});
  });
}
