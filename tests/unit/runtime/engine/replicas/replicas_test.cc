// Replicas on threads beside one executor with all their examples.

#include "runtime/engine/replicas/replicas.h"

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/engine/optimizer.h"
#include "tests/support/engine_program.h"
#include "tests/support/errors.h"
#include "tests/support/pooled_model.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

constexpr int kSteps = 5;
constexpr std::size_t kExamples = 12;

/// Examples begin, begin + 1, … below end: each has as many ids as its number says.
struct Batch {
  Tensor ids, label;
  Replicas::Feed feed;

  Batch(std::size_t begin, std::size_t end) {
    std::vector<std::int64_t> all;
    std::vector<float> labels;
    std::vector<std::size_t> offsets = {0};
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t k = 0; k <= i % 3; ++k) all.push_back(static_cast<std::int64_t>((i * 7 + k) % 5));
      offsets.push_back(all.size());
      labels.push_back(static_cast<float>(i % 2));
    }
    ids = ints({static_cast<std::int64_t>(all.size()), 1}, all);
    ids.offsets = offsets;
    label = floats({static_cast<std::int64_t>(labels.size()), 1}, labels);
    feed = {{"ids", &ids}, {"label", &label}};
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
};

using Weights = std::vector<std::vector<float>>;

Weights weights_of(const Scope& scope) {
  return {floats_of(*scope.find("w")), floats_of(*scope.find("emb"))};
}

struct Training {
  PooledModel model;
  Scope scope;

  Training(Lookups lookups, const OptimizerConfig& optimizer) : model(lookups) {
    minimize(model.main, model.startup, "loss", optimizer);
    model.startup.random_seed = 5;
    for (Operator& op : model.startup.operators()) {
      if (op.outputs[0] != "w" && op.outputs[0] != "emb") continue;
      op.type = "uniform_random";
      op.attributes = {{"shape", op.attributes.at("shape")}, {"min", -0.5}, {"max", 0.5}};
    }
    Executor(model.startup, scope).run({});
  }
};

Weights train_alone(Lookups lookups, const OptimizerConfig& optimizer, std::size_t examples = kExamples) {
  Training training(lookups, optimizer);
  Executor executor(training.model.main, training.scope);
  const Batch batch(0, examples);
  for (int i = 0; i < kSteps; ++i) executor.run(batch.feed);
  return weights_of(training.scope);
}

Weights train(Lookups lookups, const OptimizerConfig& optimizer, const ReplicaOptions& options) {
  Training training(lookups, optimizer);
  Replicas replicas(training.model.main, training.scope, options);
  const std::size_t share = kExamples / options.replicas;
  for (int i = 0; i < kSteps; ++i) {
    const std::size_t batches = replicas.run([&](std::size_t replica) {
      thread_local std::unique_ptr<Batch> batch;
      batch = std::make_unique<Batch>(replica * share, (replica + 1) * share);
      return &batch->feed;
    });
    CHECK(batches == options.replicas);
  }
  return weights_of(training.scope);
}

void check_close(const Weights& one, const Weights& other) {
  REQUIRE(one.size() == other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    REQUIRE(one[i].size() == other[i].size());
    for (std::size_t k = 0; k < one[i].size(); ++k) {
      CHECK(one[i][k] == doctest::Approx(other[i][k]).epsilon(1e-6).scale(1.0));
    }
  }
}

}  // namespace

TEST_CASE("replicas train as one executor with all their examples, within 1e-6") {
  for (const Lookups lookups : {Lookups::embedding, Lookups::rows}) {
    for (const auto kind :
         {OptimizerConfig::Kind::sgd, OptimizerConfig::Kind::momentum, OptimizerConfig::Kind::adagrad}) {
      const OptimizerConfig optimizer = {.kind = kind, .learning_rate = 0.05, .epsilon = 1e-6};
      const Weights alone = train_alone(lookups, optimizer);
      for (const std::size_t replicas : {1, 2, 3, 4}) {
        check_close(train(lookups, optimizer, {.replicas = replicas}), alone);
      }
    }
  }
}

TEST_CASE("neither the strategy nor the number of threads changes a bit") {
  const OptimizerConfig optimizer = {.kind = OptimizerConfig::Kind::adam, .learning_rate = 0.05};
  for (const Lookups lookups : {Lookups::embedding, Lookups::rows}) {
    for (const std::size_t replicas : {2, 3, 4}) {
      const Weights first = train(lookups, optimizer, {.replicas = replicas, .threads = 1});
      for (const ReduceStrategy reduce : {ReduceStrategy::all_reduce, ReduceStrategy::reduce}) {
        for (const std::size_t threads : {1, 2, 0}) {
          CHECK(train(lookups, optimizer, {.replicas = replicas, .threads = threads, .reduce = reduce}) ==
                first);
        }
      }
    }
  }
}

TEST_CASE("passes change no bit") {
  const OptimizerConfig optimizer = {.kind = OptimizerConfig::Kind::momentum, .learning_rate = 0.05};
  for (const Lookups lookups : {Lookups::embedding, Lookups::rows}) {
    const Weights plain = train(lookups, optimizer, {.replicas = 2});
    CHECK(train(lookups, optimizer, {.replicas = 2, .kept = std::set<std::string>{"loss"}}) == plain);
    CHECK(train(lookups, optimizer, {.replicas = 2, .kept = std::set<std::string>{}}) == plain);
  }
}

TEST_CASE("a parameter is owned by the replica that has the fewest values so far") {
  CHECK(owners_of(std::vector<std::size_t>{10, 3, 3, 3, 20, 1}, 2) ==
        std::vector<std::size_t>{0, 1, 1, 1, 1, 0});
  CHECK(owners_of(std::vector<std::size_t>{5, 5, 5}, 3) == std::vector<std::size_t>{0, 1, 2});
  CHECK(owners_of({}, 2).empty());
}

TEST_CASE("a replica without a batch does not count, and a step without any changes nothing") {
  const OptimizerConfig optimizer = {.kind = OptimizerConfig::Kind::momentum, .learning_rate = 0.05};
  for (const Lookups lookups : {Lookups::embedding, Lookups::rows}) {
    for (const ReduceStrategy reduce : {ReduceStrategy::all_reduce, ReduceStrategy::reduce}) {
      Training training(lookups, optimizer);
      Replicas replicas(training.model.main, training.scope, {.replicas = 3, .reduce = reduce});
      const Batch batch(0, 6);
      const Weights before = weights_of(training.scope);
      CHECK(replicas.run([](std::size_t) { return nullptr; }) == 0);
      CHECK(weights_of(training.scope) == before);
      for (int i = 0; i < kSteps; ++i) {
        CHECK(replicas.run([&](std::size_t replica) { return replica == 1 ? &batch.feed : nullptr; }) == 1);
      }
      check_close(weights_of(training.scope), train_alone(lookups, optimizer, 6));
    }
  }
}

TEST_CASE("a scale of one adds the replicas' gradients up") {
  const OptimizerConfig half = {.learning_rate = 0.02}, whole = {.learning_rate = 0.04};
  const Weights means = train(Lookups::embedding, whole, {.replicas = 2});
  check_close(train(Lookups::embedding, half, {.replicas = 2, .scale = GradientScale::one}), means);
}

TEST_CASE("a customized scale is what is fed as the loss's gradient") {
  const OptimizerConfig optimizer = {.learning_rate = 0.05};
  Training training(Lookups::embedding, optimizer);
  Replicas replicas(training.model.main, training.scope, {.replicas = 2, .scale = GradientScale::customized});
  Batch first(0, 6), second(6, 12);
  const Tensor scale = floats({1}, {0.5f});
  const Error error = error_of([&] { replicas.run([&](std::size_t) { return &first.feed; }); });
  CHECK(std::string(error.what()) == "'loss@GRAD' is not fed");
  CHECK(error.hint() == "feed every data variable that the program reads");
  first.feed["loss@GRAD"] = second.feed["loss@GRAD"] = &scale;
  for (int i = 0; i < kSteps; ++i) {
    replicas.run([&](std::size_t replica) { return replica == 0 ? &first.feed : &second.feed; });
  }
  check_close(weights_of(training.scope), train_alone(Lookups::embedding, optimizer));
}

TEST_CASE("an exchange sees sums, and says whether there is an update") {
  const OptimizerConfig optimizer = {.learning_rate = 0.05};
  for (const ReduceStrategy reduce : {ReduceStrategy::all_reduce, ReduceStrategy::reduce}) {
    Training training(Lookups::rows, optimizer);
    Replicas replicas(training.model.main, training.scope, {.replicas = 2, .reduce = reduce});
    REQUIRE(replicas.gradients().size() == 2);
    const Batch first(0, 6), second(6, 12);
    const auto feeds = [&](std::size_t replica) { return replica == 0 ? &first.feed : &second.feed; };
    const Weights before = weights_of(training.scope);
    CHECK(replicas.run(feeds, [](std::size_t) { return false; }) == 2);
    CHECK(weights_of(training.scope) == before);
    for (int i = 0; i < kSteps; ++i) {
      replicas.run(feeds, [&](std::size_t batches) {
        CHECK(batches == 2);
        for (const StepGradient& gradient : replicas.gradients()) {
          CHECK((gradient.keys == nullptr) == (gradient.parameter == "w"));
          for (float& value : gradient.values->values<float>()) value /= 2.0f;
        }
        return true;
      });
    }
    check_close(weights_of(training.scope), train_alone(Lookups::rows, optimizer));
  }
}

TEST_CASE("a replica that fails ends the step, changes nothing, and the next step goes on") {
  const OptimizerConfig optimizer = {.learning_rate = 0.05};
  Training training(Lookups::embedding, optimizer);
  Replicas replicas(training.model.main, training.scope, {.replicas = 4, .threads = 2});
  const Batch batch(0, 6);
  const Weights before = weights_of(training.scope);
  for (const std::size_t failing : {0, 1, 3}) {
    const Error error = error_of([&] {
      replicas.run([&](std::size_t replica) {
        if (replica == failing)
          throw Error(ErrorKind::data, "replica " + std::to_string(replica) + " failed");
        return &batch.feed;
      });
    });
    CHECK(std::string(error.what()) == "replica " + std::to_string(failing) + " failed");
    CHECK(weights_of(training.scope) == before);
  }
  for (int i = 0; i < kSteps; ++i) replicas.run([&](std::size_t) { return &batch.feed; });
  check_close(weights_of(training.scope), train_alone(Lookups::embedding, optimizer, 6));
}

TEST_CASE("what operators keep goes through the replicas in their order") {
  Program program;
  Scope scope;
  add_data(program, "x", DataType::float32, {-1, 1});
  for (const char* name : {"log", "count"}) {
    program.add_variable({.name = name, .type = DataType::float32, .shape = {1}, .persistable = true});
    scope.tensor(name) = floats({1}, {1.0f});
  }
  // log = 2 log + sum(x): the order of the replicas shows in its value.
  add(program, "sum", {"x"}, "sum_of_x", {{"shape", Shape{1}}, {"keep_dim", false}});
  add(program, "scale", {"log"}, "twice", {{"scale", 2.0}});
  add(program, "elementwise_add", {"twice", "sum_of_x"}, "log");
  std::vector<Tensor> inputs;
  for (const float value : {1.0f, 10.0f, 100.0f}) inputs.push_back(floats({1, 1}, {value}));
  std::vector<Replicas::Feed> feeds;
  for (const Tensor& input : inputs) feeds.push_back({{"x", &input}});
  Replicas replicas(program, scope, {.replicas = 3});
  float expected = 1.0f;
  for (int step = 0; step < 20; ++step) {
    if (step == 10) {
      CHECK_THROWS_AS(replicas.run([&](std::size_t replica) {
        if (replica == 1) throw Error(ErrorKind::data, "bad line");
        return &feeds[replica];
      }),
                      Error);
      expected = 2.0f * (2.0f * expected + 1.0f) + 100.0f;
    } else {
      replicas.run([&](std::size_t replica) { return &feeds[replica]; });
      for (const float value : {1.0f, 10.0f, 100.0f}) expected = 2.0f * expected + value;
    }
    CHECK(floats_of(scope.tensor("log"))[0] == expected);
    expected = scope.tensor("log").values<float>()[0] = 1.0f;
  }
}

TEST_CASE("no replicas, and operators after the updates, are refused") {
  Training training(Lookups::embedding, {.learning_rate = 0.05});
  Error error = error_of([&] { Replicas(training.model.main, training.scope, {.replicas = 0}); });
  CHECK(std::string(error.what()) == "0 replicas of a program");
  CHECK(error.hint() == "set CPU_NUM to 1 or more");
  add(training.model.main, "mean", {"w"}, "mean_of_w");
  error = error_of([&] { Replicas(training.model.main, training.scope, {.replicas = 2}); });
  CHECK(std::string(error.what()) == "operator mean reads w after its update");
  CHECK(error.hint() == "replicas run all updates at the end: call minimize() last");
}
