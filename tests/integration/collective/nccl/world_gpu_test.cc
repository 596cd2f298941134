// Groups of a world whose communicators are between GPUs (the fake ones): how they meet, and what ends them.
#include <doctest/doctest.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>

#include "collective/groups/world.h"
#include "tests/support/child_process.h"
#include "tests/support/fake_gpu/gpu_ranks.h"
#include "tests/support/world_job.h"

using namespace fleetrun;
using namespace fleetrun::collective;
using namespace fleetrun::tests;
using namespace std::chrono_literals;

namespace {

struct Job : WorldJob {
  GpuLibraries libraries{fake_gpu_names()};

  /// On the device of the rank's number.
  Connect on_gpus() const {
    return [this](const GroupRendezvous& rendezvous) {
      NcclOptions options;
      options.device = rendezvous.place.rank;
      options.meet_within = rendezvous.meet_within;
      options.call_within = rendezvous.call_within;
      return std::make_unique<NcclCommunicator>(libraries, rendezvous.place, rendezvous.store,
                                                rendezvous.prefix, options);
    };
  }
};

/// Nobody leaves before all are here: rank 0 has the store.
void leave_together(World& world) {
  world.store().set("leaves/" + std::to_string(world.rank()), "");
  for (int rank = 0; rank < world.size(); ++rank)
    world.store().wait("leaves/" + std::to_string(rank), Store::Clock::now() + 20s);
}

/// A communicator that only waits for its end.
class Ending : public Communicator {
 public:
  explicit Ending(Place place) : place_(std::move(place)) {}
  const Place& place() const noexcept override { return place_; }
  void run(const Call&) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, 20s, [&] { return why_.has_value(); }))
      throw Error(ErrorKind::timeout, "nobody has ended it");
    throw *why_;
  }
  std::unique_ptr<Work> start(const Call&) override { return nullptr; }
  void abort(const Error& why) noexcept override {
    const std::lock_guard lock(mutex_);
    if (!why_) why_ = why;
    changed_.notify_all();
  }

 private:
  const Place place_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Error> why_;
};

}  // namespace

TEST_CASE("ranks of a world form groups between their GPUs, beside those of their hosts") {
  const Job job;
  run_ranks(3, [&](int rank) {
    const auto world = World::join(job.options(rank, 3));
    const auto hosts = world->make_communicator("all");
    const auto gpus = world->make_communicator("all/GPU", {}, {}, job.on_gpus());
    const auto two = rank == 1 ? nullptr : world->make_communicator("two/GPU", {2, 0}, {}, job.on_gpus());
    std::vector<float> values(1000, static_cast<float>(rank)), same = values;
    gpus->run(all_reduce_of(values));
    hosts->run(all_reduce_of(same));
    CHECK(values == std::vector<float>(1000, 3));
    CHECK(values == same);
    if (two) {
      CHECK(two->place().rank == (rank == 2 ? 0 : 1));
      two->run(all_reduce_of(values));
      CHECK(values == std::vector<float>(1000, 6));
    }
    leave_together(*world);
  });
}

TEST_CASE("in two levels a group between GPUs gets its inner groups, else none") {
  const Job job;
  run_ranks(4, [&](int rank) {
    const auto world = World::join(job.options(rank, 4));
    const auto groups_of = [&](const std::string& name, const CommunicatorOptions& options) {
      std::vector<std::vector<int>> groups;
      world->make_communicator(name, {}, options, [&](const GroupRendezvous& rendezvous) {
        groups = rendezvous.inner_groups;
        return std::make_unique<Ending>(rendezvous.place);
      });
      return groups;
    };
    CHECK(groups_of("flat", {}).empty());
    CHECK(groups_of("of two", {.hierarchical = true, .inner_size = 2}) ==
          std::vector<std::vector<int>>{{0, 1}, {2, 3}});
    CHECK(groups_of("of one host", {.hierarchical = true}).empty());
    leave_together(*world);
  });
}

TEST_CASE("a rank that has no GPU tells those that wait for it") {
  const Job job;
  run_ranks(2, [&](int rank) {
    const auto world = World::join(job.options(rank, 2));
    const Error error = error_of([&] {
      world->make_communicator("all/GPU", {}, {}, [&](const GroupRendezvous& rendezvous) {
        if (rank == 1) throw Error(ErrorKind::host, "rank 1 sees no GPU", "check --gpus");
        return job.on_gpus()(rendezvous);
      });
    });
    CHECK(error.kind() == ErrorKind::host);
    CHECK(std::string(error.what()) == "rank 1 sees no GPU");
    CHECK(error.hint() == "check --gpus");
    leave_together(*world);
  });
}

TEST_CASE("a group between GPUs is ended when one of its ranks dies, and no other") {
  const Job job;
  const Connect connect = [](const GroupRendezvous& rendezvous) {
    return std::make_unique<Ending>(rendezvous.place);
  };
  const ChildProcess child([&](int) {
    const auto world = World::join(job.options(2, 3));
    const auto all = world->make_communicator("all/GPU", {}, {}, connect);
    world->store().set("here", "");
    world->store().wait("never", Store::Clock::now() + 60s);
  });
  run_ranks(2, [&](int rank) {
    const auto world = World::join(job.options(rank, 3));
    const auto all = world->make_communicator("all/GPU", {}, {}, connect);
    const auto two = world->make_communicator("two/GPU", {0, 1}, {}, job.on_gpus());
    world->store().wait("here", Store::Clock::now() + 20s);
    if (rank == 0) child.signal(SIGKILL);
    const Error error = error_of([&] { all->run({}); });
    CHECK(error.kind() == ErrorKind::network);
    CHECK(contains(error.what(), "group all/GPU: rank 2"));
    std::vector<float> values(10, 1);
    two->run(all_reduce_of(values));
    CHECK(values == std::vector<float>(10, 2));
    // A new one with it cannot be made.
    const Error late = error_of([&] { world->make_communicator("late/GPU", {}, {}, job.on_gpus()); });
    CHECK(contains(late.what(), "group late/GPU: rank 2"));
    world->store().set("done/" + std::to_string(rank), "");
    for (int other = 0; other < 2; ++other)
      world->store().wait("done/" + std::to_string(other), Store::Clock::now() + 20s);
  });
}
