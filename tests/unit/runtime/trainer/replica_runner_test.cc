// Feeds that are split, fetches that are put together, beside one executor.

#include "runtime/trainer/replica_runner.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collective/cpu/shared_communicator.h"
#include "runtime/base/error.h"
#include "runtime/engine/optimizer.h"
#include "tests/support/engine_program.h"
#include "tests/support/errors.h"
#include "tests/support/pooled_model.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::runtime;
using namespace fleetrun::tests;

namespace {

constexpr int kSteps = 4;

struct Batch {
  Tensor ids, label;
  ReplicaRunner::Feed feed;

  /// Example i has i % 3 ids and the label i % 2.
  explicit Batch(std::size_t examples, std::size_t first = 0) {
    std::vector<std::int64_t> all;
    std::vector<float> labels;
    ids.offsets = {0};
    std::vector<std::size_t> offsets = {0};
    for (std::size_t i = first; i < first + examples; ++i) {
      for (std::size_t k = 0; k < i % 3; ++k) all.push_back(static_cast<std::int64_t>(i + k));
      offsets.push_back(all.size());
      labels.push_back(static_cast<float>(i % 2));
    }
    ids = ints({static_cast<std::int64_t>(all.size()), 1}, all);
    ids.offsets = offsets;
    label = floats({static_cast<std::int64_t>(examples), 1}, labels);
    feed = {{"ids", &ids}, {"label", &label}};
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
};

struct Model {
  PooledModel model;
  Scope scope;

  explicit Model(const OptimizerConfig& optimizer = {.learning_rate = 0.05}) : model(Lookups::embedding) {
    minimize(model.main, model.startup, "loss", optimizer);
    Executor(model.startup, scope).run({});
  }
  std::vector<float> weights() const { return floats_of(*scope.find("w")); }
};

std::vector<float> train_alone(const Batch& batch) {
  Model model;
  Executor executor(model.model.main, model.scope);
  for (int i = 0; i < kSteps; ++i) executor.run(batch.feed);
  return model.weights();
}

void check_close(const std::vector<float>& one, const std::vector<float>& other) {
  REQUIRE(one.size() == other.size());
  for (std::size_t i = 0; i < one.size(); ++i)
    CHECK(one[i] == doctest::Approx(other[i]).epsilon(1e-6).scale(1.0));
}

}  // namespace

TEST_CASE("examples of a tensor are rows, or sequences with their values") {
  const Batch batch(5);
  const Tensor label = examples_of(batch.label, 1, 4);
  CHECK(label.shape() == Shape{3, 1});
  CHECK(floats_of(label) == std::vector<float>{1.0f, 0.0f, 1.0f});
  const Tensor ids = examples_of(batch.ids, 2, 5);
  CHECK(ids.offsets == std::vector<std::size_t>{0, 2, 2, 3});
  CHECK(ints_of(ids) == std::vector<std::int64_t>{2, 3, 4});
  CHECK(example_count(batch.ids) == 5);
  CHECK(examples_of(batch.ids, 3, 3).shape() == Shape{0, 1});
}

TEST_CASE("a batch is shared out, and training is that of the batch in one") {
  const Batch batch(12);
  const std::vector<float> alone = train_alone(batch);
  for (const std::size_t replicas : {1, 2, 3, 4}) {
    Model model;
    ReplicaRunner runner(model.model.main, model.scope, {.replicas = replicas});
    for (int i = 0; i < kSteps; ++i) runner.run(batch.feed);
    CHECK(runner.active() == replicas);
    check_close(model.weights(), alone);
  }
}

TEST_CASE(
    "the first replicas get the examples that are left over, and what is fetched is in the batch's order") {
  Model model, whole;
  ReplicaRunner runner(model.model.main, model.scope, {.replicas = 3});
  const Batch batch(8);
  runner.run(batch.feed);
  Executor executor(whole.model.main, whole.scope);
  executor.run(batch.feed);
  CHECK(runner.tensor(0, "out").shape() == Shape{3, 1});
  CHECK(runner.tensor(1, "out").shape() == Shape{3, 1});
  CHECK(runner.tensor(2, "out").shape() == Shape{2, 1});
  CHECK(floats_of(runner.merged("out")) == floats_of(executor.tensor("out")));
  CHECK(runner.merged("loss").shape() == Shape{3});
  CHECK(runner.merged("w").shape() == Shape{12, 1});
  CHECK(runner.merged("rows").offsets == batch.ids.offsets);
  CHECK(floats_of(runner.merged("rows")) == floats_of(executor.tensor("rows")));
}

TEST_CASE("with fewer examples than replicas the first ones get one each") {
  Model model;
  ReplicaRunner runner(model.model.main, model.scope, {.replicas = 4});
  const Batch batch(2);
  for (int i = 0; i < kSteps; ++i) runner.run(batch.feed);
  CHECK(runner.active() == 2);
  CHECK(runner.merged("out").shape() == Shape{2, 1});
  check_close(model.weights(), train_alone(batch));
}

TEST_CASE("a feed for each replica is fed as it is; another number of feeds is refused") {
  Model model;
  ReplicaRunner runner(model.model.main, model.scope, {.replicas = 2, .reduce = ReduceStrategy::reduce});
  const Batch first(6), second(6, 6), both(12);
  const std::vector<ReplicaRunner::Feed> feeds = {first.feed, second.feed};
  for (int i = 0; i < kSteps; ++i) runner.run(feeds);
  check_close(model.weights(), train_alone(both));
  const Error error = error_of([&] { runner.run(std::vector<ReplicaRunner::Feed>{first.feed}); });
  CHECK(std::string(error.what()) == "1 feeds for 2 replicas");
  CHECK(error.hint() == "give each replica a feed, or all of them one, which is split");
}

TEST_CASE("values that differ in another axis than the first are not put together") {
  Program program;
  Scope scope;
  add_data(program, "x", DataType::float32, {-1, -1});
  add(program, "scale", {"x"}, "y", {{"scale", 2.0}});
  ReplicaRunner runner(program, scope, {.replicas = 2});
  const Tensor narrow = floats({1, 1}, {1.0f}), wide = floats({1, 2}, {1.0f, 2.0f});
  runner.run(std::vector<ReplicaRunner::Feed>{{{"x", &narrow}}, {{"x", &wide}}});
  CHECK(floats_of(runner.tensor(1, "y")) == std::vector<float>{2.0f, 4.0f});
  const Error error = error_of([&] { runner.merged("y"); });
  CHECK(std::string(error.what()) == "'y' is [1, 1] in replica 0 and [1, 2] in replica 1");
  CHECK(error.hint() == "fetch it with return_merged=False");
}

TEST_CASE("ranks of replicas train as one process with all their examples") {
  const auto communicators = collective::make_thread_communicators("ranks", 2);
  std::vector<std::vector<float>> weights(2);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        Model model;
        ReplicaRunner runner(model.model.main, model.scope, {.replicas = 2}, {communicators[rank].get()});
        const Batch batch(6, 6 * rank);
        for (int i = 0; i < kSteps; ++i) runner.run(batch.feed);
        weights[rank] = model.weights();
      });
    }
  }
  CHECK(weights[0] == weights[1]);
  check_close(weights[0], train_alone(Batch(12)));
  Model model;
  const Error error = error_of([&] {
    ReplicaRunner(model.model.main, model.scope, {.replicas = 2, .scale = GradientScale::one},
                  {communicators[0].get()});
  });
  CHECK(std::string(error.what()) ==
        "gradient_scale_strategy of several trainers: their gradients are averaged");
  CHECK(error.hint() == "leave it at CoeffNumDevice");
}

TEST_CASE("with local SGD replicas of a rank train together, ranks apart until an average") {
  const auto communicators = collective::make_thread_communicators("ranks", 2);
  std::vector<std::vector<float>> apart(2), together(2);
  std::vector<std::size_t> waiting(2);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        Model model;
        ReplicaRunner runner(model.model.main, model.scope, {.replicas = 2}, {communicators[rank].get()},
                             {.mean = {}, .local = LocalStepOptions{.k_steps = 10}, .loss = "loss"});
        const Batch batch(5, 7 * rank);  // six would be alike but for their ids
        for (int i = 0; i < kSteps; ++i) runner.run(batch.feed);
        apart[rank] = model.weights();
        waiting[rank] = runner.since_average();
        runner.synchronize();
        together[rank] = model.weights();
        CHECK(runner.since_average() == 0);
      });
    }
  }
  // The first step is averaged (begin_step), the others were taken apart.
  CHECK(waiting == std::vector<std::size_t>{kSteps - 1, kSteps - 1});
  CHECK(apart[0] != apart[1]);
  CHECK(together[0] == together[1]);
  std::vector<float> mean;
  for (std::size_t i = 0; i < apart[0].size(); ++i) mean.push_back((apart[0][i] + apart[1][i]) / 2);
  check_close(together[0], mean);
}
