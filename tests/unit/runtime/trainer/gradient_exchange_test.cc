// Ranks as threads that train one model with a part of the examples each,
// beside one process with all of them.

#include "runtime/trainer/gradient_exchange.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collective/cpu/shared_communicator.h"
#include "runtime/base/error.h"
#include "runtime/engine/optimizer.h"
#include "tests/support/engine_program.h"
#include "tests/support/pooled_model.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::runtime;
using namespace fleetrun::tests;

namespace {

constexpr int kSteps = 5;

struct Example {
  std::vector<std::int64_t> ids;
  float label = 0.0f;
};
const std::vector<Example> kExamples = {{{1, 2}, 1.0f}, {{3}, 0.0f}, {{2, 3, 7}, 1.0f}, {{1}, 0.0f}};

/// A batch of examples begin, begin + 1, … below end.
struct Batch {
  Tensor ids, label;

  Batch(std::size_t begin, std::size_t end) {
    std::vector<std::int64_t> all;
    std::vector<float> labels;
    std::vector<std::size_t> offsets = {0};
    for (std::size_t i = begin; i < end; ++i) {
      all.insert(all.end(), kExamples[i].ids.begin(), kExamples[i].ids.end());
      offsets.push_back(all.size());
      labels.push_back(kExamples[i].label);
    }
    ids = ints({static_cast<std::int64_t>(all.size()), 1}, all);
    ids.offsets = offsets;
    label = floats({static_cast<std::int64_t>(labels.size()), 1}, labels);
  }
  std::map<std::string, const Tensor*> feed() const { return {{"ids", &ids}, {"label", &label}}; }
};

using Weights = std::vector<std::vector<float>>;

Weights weights_of(const Scope& scope) {
  return {floats_of(*scope.find("w")), floats_of(*scope.find("emb"))};
}

PooledModel model_of(Lookups lookups, const OptimizerConfig& optimizer) {
  PooledModel model(lookups);
  minimize(model.main, model.startup, "loss", optimizer);
  return model;
}

Weights train_alone(Lookups lookups, const OptimizerConfig& optimizer) {
  const PooledModel model = model_of(lookups, optimizer);
  Scope scope;
  Executor(model.startup, scope).run({});
  Executor executor(model.main, scope);
  const Batch batch(0, kExamples.size());
  for (int i = 0; i < kSteps; ++i) executor.run(batch.feed());
  return weights_of(scope);
}

/// Of a step's stages the exchange is between two parts of computing.
void check_profile(const EpochProfile& profile, bool is_measured) {
  CHECK((profile.stages()[static_cast<std::size_t>(Stage::compute)] > 0.0) == is_measured);
  CHECK((profile.stages()[static_cast<std::size_t>(Stage::exchange)] > 0.0) == is_measured);
  CHECK(profile.operators().contains("mean") == is_measured);
  if (is_measured) CHECK(profile.operators().at("mean").calls == kSteps);
}

/// The weights of every rank. `groups`: communicators that the buckets take in turn.
std::vector<Weights> train_together(Lookups lookups, const OptimizerConfig& optimizer, int ranks,
                                    const collective::BucketRule& rule, std::size_t groups = 1) {
  std::vector<std::vector<std::unique_ptr<collective::Communicator>>> made;
  for (std::size_t i = 0; i < groups; ++i) {
    made.push_back(collective::make_thread_communicators("gradients " + std::to_string(i), ranks));
  }
  std::vector<Weights> weights(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < weights.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const PooledModel model = model_of(lookups, optimizer);
      Scope scope;
      Executor(model.startup, scope).run({});
      std::vector<collective::Communicator*> communicators;
      for (const auto& group : made) communicators.push_back(group[rank].get());
      GradientExchange exchange(model.main, scope, communicators, {rule});
      const std::size_t share = kExamples.size() / weights.size();
      const Batch batch(rank * share, (rank + 1) * share);
      // Measuring changes nothing.
      EpochProfile profile(rank == 0, {});
      for (int i = 0; i < kSteps; ++i) exchange.run(batch.feed(), &profile);
      check_profile(profile, rank == 0);
      weights[rank] = weights_of(scope);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return weights;
}

void check_close(const Weights& one, const Weights& other) {
  REQUIRE(one.size() == other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    REQUIRE(one[i].size() == other[i].size());
    for (std::size_t k = 0; k < one[i].size(); ++k)
      CHECK(one[i][k] == doctest::Approx(other[i][k]).epsilon(1e-5));
  }
}

}  // namespace

TEST_CASE("ranks train as one process with all their examples, and have the same bits") {
  for (const Lookups lookups : {Lookups::embedding, Lookups::rows}) {
    for (const auto kind : {OptimizerConfig::Kind::sgd, OptimizerConfig::Kind::momentum}) {
      const OptimizerConfig optimizer = {.kind = kind, .learning_rate = 0.05};
      const Weights alone = train_alone(lookups, optimizer);
      for (const int ranks : {1, 2, 4}) {
        const auto together = train_together(lookups, optimizer, ranks, {-1.0, 1});
        check_close(together[0], alone);
        for (const Weights& weights : together) CHECK(weights == together[0]);
      }
    }
  }
}

TEST_CASE("neither buckets nor the number of communicators change the result") {
  const OptimizerConfig optimizer = {.learning_rate = 0.05};
  const auto plain = train_together(Lookups::embedding, optimizer, 2, {-1.0, 1});
  CHECK(train_together(Lookups::embedding, optimizer, 2, {0.0, 1}) == plain);
  CHECK(train_together(Lookups::embedding, optimizer, 2, {32.0, 50}) == plain);
  CHECK(train_together(Lookups::embedding, optimizer, 2, {-1.0, 1}, 2) == plain);
}

TEST_CASE("buckets are those of the rule, and rows are in none") {
  const auto buckets = [](Lookups lookups, const collective::BucketRule& rule) {
    const PooledModel model = model_of(lookups, {});
    Scope scope;
    Executor(model.startup, scope).run({});
    const auto alone = collective::make_thread_communicators("alone", 1);
    return GradientExchange(model.main, scope, {alone[0].get()}, {rule}).buckets();
  };
  CHECK(buckets(Lookups::embedding, {-1.0, 1}) == 2);
  CHECK(buckets(Lookups::embedding, {32.0, 50}) == 1);
  CHECK(buckets(Lookups::rows, {-1.0, 1}) == 1);
}

TEST_CASE("rows of tables are refused") {
  const PooledModel model(Lookups::tables);
  Scope scope;
  Executor(model.startup, scope).run({});
  const auto alone = collective::make_thread_communicators("alone", 1);
  try {
    GradientExchange(model.main, scope, {alone[0].get()}, {});
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(std::string(error.what()) == "collective training of a program with sparse_embedding");
    CHECK(error.hint() == "use paddle.nn.Embedding, or train with a parameter server");
  }
}

TEST_CASE(
    "gradients in one bucket, in one for each layer, and in buckets of several groups have the same bits") {
  const OptimizerConfig optimizer = {.kind = OptimizerConfig::Kind::momentum, .learning_rate = 0.05};
  const auto apart = train_together(Lookups::embedding, optimizer, 2, {-1.0, 1});
  CHECK(train_together(Lookups::embedding, optimizer, 2, {32.0, 50}) == apart);
  CHECK(train_together(Lookups::embedding, optimizer, 2, {0.0, 1}) == apart);
  CHECK(train_together(Lookups::embedding, optimizer, 2, {-1.0, 1}, 2) == apart);
}

TEST_CASE("the program that is run says when each bucket travels") {
  const PooledModel model = model_of(Lookups::embedding, {});
  Scope scope;
  Executor(model.startup, scope).run({});
  const auto alone = collective::make_thread_communicators("alone", 1);
  const GradientExchange exchange(model.main, scope, {alone[0].get()}, {{-1.0, 1}});
  std::vector<std::string> types;
  for (const Operator& op : exchange.program().operators()) {
    if (op.type.starts_with("reduce_") || op.type == "sgd") types.push_back(op.type);
  }
  CHECK(types ==
        std::vector<std::string>{"reduce_start", "reduce_start", "reduce_wait", "sgd", "reduce_wait", "sgd"});
}
