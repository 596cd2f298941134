// Replicas on the CTR-DNN shape (tests/support/ctr_model.h): examples/s of one executor, and of 1, 2, …
// replicas that share out a batch of so many examples for each, in turn in each round.
//
//   replicas_bench [BATCH [REPLICAS [ROUNDS]]]    a line of JSON with examples/s for each round

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/executor.h"
#include "runtime/trainer/replica_runner.h"
#include "tests/support/ctr_model.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

/// What trains, over a scope and batches of its own.
struct Trained {
  Scope scope;
  std::vector<std::map<std::string, Tensor>> batches;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<runtime::ReplicaRunner> runner;
  std::size_t at = 0;

  /// replicas: 0 for a plain executor.
  Trained(const CtrModel& model, const CtrShape& shape, std::int64_t batch, std::size_t replicas)
      : batches(ctr_batches(shape, 20, batch)) {
    Executor(model.startup, scope).run({});
    if (replicas == 0) {
      executor = std::make_unique<Executor>(model.main, scope);
    } else {
      runner =
          std::make_unique<runtime::ReplicaRunner>(model.main, scope, ReplicaOptions{.replicas = replicas});
    }
  }
  void step() {
    const CtrFeed feed = feed_of(batches[at++ % batches.size()]);
    if (executor) return executor->run(feed);
    runner->run(feed);
  }
};

double rate_of(Trained& trained, std::size_t steps, std::int64_t batch) {
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < steps; ++i) trained.step();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return static_cast<double>(steps) * static_cast<double>(batch) / seconds.count();
}

void print(const char* name, const std::vector<double>& rates, bool is_last = false) {
  std::printf("\"%s\": [", name);
  for (std::size_t i = 0; i < rates.size(); ++i) std::printf("%s%.0f", i == 0 ? "" : ", ", rates[i]);
  std::printf(is_last ? "]}\n" : "], ");
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t batch = argc > 1 ? std::atoll(argv[1]) : 1000;
  const std::size_t replicas = argc > 2 ? static_cast<std::size_t>(std::atoll(argv[2])) : 2;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 5;
  const CtrShape shape;
  const CtrModel model(shape);
  const auto whole = static_cast<std::int64_t>(replicas) * batch;
  Trained plain(model, shape, batch, 0), one(model, shape, batch, 1), several(model, shape, whole, replicas);
  const std::size_t steps = static_cast<std::size_t>(40000 / batch) + 1;
  std::vector<double> plain_rates, one_rates, several_rates;
  for (int round = 0; round <= rounds; ++round) {
    const double of_plain = rate_of(plain, steps, batch);
    const double of_one = rate_of(one, steps, batch);
    const double of_several = rate_of(several, steps, whole);
    if (round == 0) continue;  // memory is touched, products are prepared
    plain_rates.push_back(of_plain);
    one_rates.push_back(of_one);
    several_rates.push_back(of_several);
  }
  std::printf("{\"batch\": %lld, \"replicas\": %zu, ", static_cast<long long>(batch), replicas);
  print("executor", plain_rates);
  print("one", one_rates);
  print("several", several_rates, true);
}
