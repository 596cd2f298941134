// Two ranks, a thread each, that average the gradients of a network over shared memory: steps a second when
// each layer's gradients are reduced alone and when they are joined to buckets, as the schedule in the
// program says, and when all buckets travel after the backward pass, in turn in each round.
//
//   gradient_exchange_bench [LAYERS [WIDTH [BATCH [ROUNDS]]]]    a line of JSON with steps/s for each round

#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collective/cpu/shared_communicator.h"
#include "runtime/trainer/gradient_exchange.h"
#include "runtime/trainer/replica_runner.h"
#include "tests/support/ctr_model.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

constexpr int kRanks = 2;
constexpr collective::BucketRule kApart{-1.0, 1}, kJoined{32.0, 50};
constexpr const char* kWays[] = {"layers", "buckets", "after_backward"};

/// What one rank trains in one way, over a scope of its own.
struct Rank {
  Scope scope;
  std::unique_ptr<runtime::GradientExchange> exchange;
  std::unique_ptr<runtime::ReplicaRunner> runner;

  Rank(const CtrModel& model, std::size_t way, collective::Communicator& communicator) {
    Executor(model.startup, scope).run({});
    runtime::CollectiveOptions options;
    options.mean.rule = way == 0 ? kApart : kJoined;
    if (way == 2) {
      runner = std::make_unique<runtime::ReplicaRunner>(model.main, scope, ReplicaOptions{.replicas = 1},
                                                        std::vector<collective::Communicator*>{&communicator},
                                                        options);
    } else {
      exchange = std::make_unique<runtime::GradientExchange>(
          model.main, scope, std::vector<collective::Communicator*>{&communicator}, options.mean);
    }
  }
  void step(const CtrFeed& feed) {
    if (exchange) return exchange->run(feed);
    runner->run(feed);
  }
};

/// Steps a second of all ranks together.
double rate_of(std::vector<std::unique_ptr<Rank>>& ranks,
               const std::vector<std::map<std::string, Tensor>>& batches, std::size_t steps) {
  std::chrono::steady_clock::time_point start;
  std::barrier barrier(kRanks, [&start]() noexcept { start = std::chrono::steady_clock::now(); });
  {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      threads.emplace_back([&, r] {
        barrier.arrive_and_wait();
        for (std::size_t i = 0; i < steps; ++i) ranks[r]->step(feed_of(batches[(i + r) % batches.size()]));
      });
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return static_cast<double>(steps) / seconds.count();
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int index, long fallback) {
    return argc > index ? std::atol(argv[index]) : fallback;
  };
  CtrShape shape;
  shape.rows = 10'000;
  shape.slots = 4;
  shape.layers.assign(static_cast<std::size_t>(number(1, 3)), number(2, 400));
  const long batch = number(3, 100), rounds = number(4, 5);
  const CtrModel model(shape);
  const auto batches = ctr_batches(shape, 8, batch);
  std::vector<std::vector<std::unique_ptr<collective::Communicator>>> communicators;
  std::vector<std::vector<std::unique_ptr<Rank>>> ways;
  for (std::size_t way = 0; way < std::size(kWays); ++way) {
    communicators.push_back(collective::make_thread_communicators(kWays[way], kRanks));
    ways.emplace_back();
    for (const auto& communicator : communicators.back())
      ways.back().push_back(std::make_unique<Rank>(model, way, *communicator));
  }
  std::vector<std::vector<double>> rates(std::size(kWays));
  for (long round = 0; round <= rounds; ++round) {
    for (std::size_t way = 0; way < std::size(kWays); ++way) {
      const double rate = rate_of(ways[way], batches, 200);
      if (round > 0) rates[way].push_back(rate);  // before, memory is touched
    }
  }
  std::printf("{\"layers\": %zu, \"width\": %ld, \"batch\": %ld", shape.layers.size(), number(2, 400), batch);
  for (std::size_t way = 0; way < std::size(kWays); ++way) {
    std::printf(", \"%s\": [", kWays[way]);
    for (std::size_t i = 0; i < rates[way].size(); ++i)
      std::printf("%s%.0f", i == 0 ? "" : ", ", rates[way][i]);
    std::printf("]");
  }
  std::printf("}\n");
}
