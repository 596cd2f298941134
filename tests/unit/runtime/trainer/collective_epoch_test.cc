// Ranks as threads, each with files of its own.

#include "runtime/trainer/collective_epoch.h"

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "collective/cpu/shared_communicator.h"
#include "dataset/queue/queue_dataset.h"
#include "runtime/base/error.h"
#include "runtime/engine/optimizer.h"
#include "tests/support/engine_program.h"
#include "tests/support/pooled_model.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::runtime;
using namespace fleetrun::tests;

namespace {

using Weights = std::vector<std::vector<float>>;
constexpr int kPasses = 2;

std::string lines(int count, int seed) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const int a = 1 + (i * 7 + seed) % 5, b = 1 + (i * 3 + seed) % 5;
    text += "2 " + std::to_string(a) + " " + std::to_string(b) + " 1 " + std::to_string((a + b) % 2) + "\n";
  }
  return text;
}

dataset::QueueDatasetOptions reading(std::vector<std::string> files, std::size_t batch) {
  dataset::QueueDatasetOptions options;
  options.slots = {{"ids", dataset::SlotType::int64, false, 1},
                   {"label", dataset::SlotType::float32, true, 1}};
  options.batch_size = batch;
  options.threads = files.size();
  options.files = std::move(files);
  return options;
}

struct Model {
  PooledModel model;
  Scope scope;

  Model(Lookups lookups, const OptimizerConfig& optimizer) : model(lookups) {
    minimize(model.main, model.startup, "loss", optimizer);
    Executor(model.startup, scope).run({});
  }
  Weights weights() const { return {floats_of(*scope.find("w")), floats_of(*scope.find("emb"))}; }
};

struct Outcome {
  Weights weights;
  std::vector<EpochResult> passes;
  std::vector<std::string> printed;
};

/// files[rank][thread]: contents. The outcome of each rank.
std::vector<Outcome> train(Lookups lookups, const OptimizerConfig& optimizer,
                           const std::vector<std::vector<std::string>>& files,
                           const CollectiveOptions& options, std::size_t batch = 2) {
  const TempDir dir;
  const auto communicators = collective::make_thread_communicators("pass", static_cast<int>(files.size()));
  std::vector<Outcome> outcomes(files.size());
  std::vector<std::vector<std::string>> paths(files.size());
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    for (std::size_t thread = 0; thread < files[rank].size(); ++thread) {
      paths[rank].push_back(
          dir.write(std::to_string(rank) + "-" + std::to_string(thread) + ".txt", files[rank][thread]));
    }
  }
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Model model(lookups, optimizer);
      CollectiveEpoch pass(model.model.main, model.scope, {communicators[rank].get()}, options);
      Outcome& outcome = outcomes[rank];
      EpochOptions epoch_options{.fetch = {"loss"}, .fetch_info = {"loss"}, .print_period = 1};
      epoch_options.print = [&outcome](const std::string& line) { outcome.printed.push_back(line); };
      for (int i = 0; i < kPasses; ++i) {
        dataset::QueueDataset dataset(reading(paths[rank], batch));
        outcome.passes.push_back(pass.run(dataset, epoch_options));
      }
      outcome.weights = model.weights();
    });
  }
  threads.clear();
  return outcomes;
}

Weights train_alone(Lookups lookups, const OptimizerConfig& optimizer, const std::string& text,
                    std::size_t batch) {
  return train(lookups, optimizer, {{text}}, {}, batch)[0].weights;
}

void check_close(const Weights& one, const Weights& other) {
  REQUIRE(one.size() == other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    REQUIRE(one[i].size() == other[i].size());
    for (std::size_t k = 0; k < one[i].size(); ++k) {
      CHECK(one[i][k] == doctest::Approx(other[i][k]).epsilon(1e-5).scale(1.0));
    }
  }
}

void check_alike(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) CHECK(outcome.weights == outcomes[0].weights);
}

/// Two texts whose batches of two, taken alternately, are the batches of four of the third.
struct Halves {
  std::string first, second, both;

  explicit Halves(int batches) {
    for (int i = 0; i < batches; ++i) {
      const std::string a = lines(2, i), b = lines(2, i + 3);
      first += a;
      second += b;
      both += a + b;
    }
  }
};

const OptimizerConfig kMomentum = {.kind = OptimizerConfig::Kind::momentum, .learning_rate = 0.02};

}  // namespace

TEST_CASE("ranks and threads train as one process with all their batches, and end with the same bits") {
  const Halves halves(7);
  for (const Lookups lookups : {Lookups::embedding, Lookups::rows}) {
    const Weights alone = train_alone(lookups, kMomentum, halves.both, 4);
    const auto ranks = train(lookups, kMomentum, {{halves.first}, {halves.second}}, {});
    check_alike(ranks);
    check_close(ranks[0].weights, alone);
    check_close(train(lookups, kMomentum, {{halves.first, halves.second}}, {})[0].weights, alone);
    CHECK(ranks[0].passes[0].examples == 14);
    CHECK(ranks[1].passes[1].batches == 7);
    CHECK(ranks[0].passes[0].fetch_means[0] > 0.0);
    REQUIRE(ranks[0].printed.size() == 14);
    CHECK(ranks[0].printed[0].find("batch: [1], loss[1]:[") != std::string::npos);
    // Again: the same bits.
    CHECK(train(lookups, kMomentum, {{halves.first}, {halves.second}}, {})[0].weights == ranks[0].weights);
  }
}

TEST_CASE("who has no batch left takes part with none: every example counts once") {
  const Halves halves(3);
  const std::string more = lines(8, 5);
  for (const Lookups lookups : {Lookups::embedding, Lookups::rows}) {
    // The long one goes on alone, with its own batches of two.
    const auto ranks = train(lookups, kMomentum,
                             {{halves.first + more}, {halves.second}, {halves.first, halves.second}}, {});
    check_alike(ranks);
    CHECK(ranks[0].passes[0].batches == 7);
    CHECK(ranks[1].passes[0].batches == 3);
    CHECK(ranks[2].passes[0].batches == 6);
    const auto two = train(lookups, kMomentum, {{halves.first + more}, {halves.second}}, {});
    check_alike(two);
    check_close(two[0].weights, ranks[0].weights);
  }
}

TEST_CASE(
    "local SGD with one step is training with averaged gradients, and with more steps all ranks end alike") {
  const Halves halves(7);
  const OptimizerConfig sgd = {.learning_rate = 0.02};
  const auto averaged = train(Lookups::embedding, sgd, {{halves.first}, {halves.second}}, {});
  const auto local = train(Lookups::embedding, sgd, {{halves.first}, {halves.second}},
                           {.mean = {}, .local = LocalStepOptions{}});
  check_alike(local);
  check_close(local[0].weights, averaged[0].weights);
  for (const bool adaptive : {false, true}) {
    const CollectiveOptions options = {
        .mean = {},
        .local = LocalStepOptions{.k_steps = 3, .begin_step = 2, .adaptive = adaptive},
        .loss = "loss"};
    const auto ranks =
        train(Lookups::embedding, kMomentum, {{halves.first + lines(8, 5)}, {halves.second}}, options);
    check_alike(ranks);
    CHECK(ranks[0].weights != averaged[0].weights);
    CHECK(ranks[0].passes[0].batches == 11);
  }
}

TEST_CASE("gradients as float16, and compressed ones, leave all ranks alike") {
  const Halves halves(7);
  const auto exact = train(Lookups::embedding, kMomentum, {{halves.first}, {halves.second}}, {});
  const auto half = train(Lookups::embedding, kMomentum, {{halves.first}, {halves.second}},
                          {.mean = {.rule = {}, .half = true}});
  check_alike(half);
  CHECK(half[0].weights != exact[0].weights);
  CHECK(half[0].weights[0][0] == doctest::Approx(exact[0].weights[0][0]).epsilon(0.01));
  const RankMeanOptions compressed = {
      .rule = {},
      .half = false,
      .compression = CompressionRule{.begin_step = 2, .sparsity = {0.9}, .min_values = 100}};
  const auto sparse =
      train(Lookups::embedding, kMomentum, {{halves.first}, {halves.second}}, {.mean = compressed});
  check_alike(sparse);
  CHECK(sparse[0].weights != exact[0].weights);
}

TEST_CASE("a bad line is the error of its rank's pass, and the other rank does not wait for it") {
  const TempDir dir;
  const auto communicators = collective::make_thread_communicators("pass", 2);
  const std::vector<std::vector<std::string>> files = {
      {dir.write("good.txt", lines(4000, 1))},
      {dir.write("long.txt", lines(4000, 2)), dir.write("bad.txt", lines(4, 1) + "2 1\n")}};
  std::vector<std::string> errors(2);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        Model model(Lookups::embedding, kMomentum);
        CollectiveEpoch pass(model.model.main, model.scope, {communicators[rank].get()}, {});
        dataset::QueueDataset dataset(reading(files[rank], 2));
        try {
          pass.run(dataset, {});
        } catch (const Error& error) {
          errors[rank] = error.what();
        }
      });
    }
  }
  CHECK(errors[1].find("bad.txt:5") != std::string::npos);
  CHECK(errors[0].find("bad.txt:5") != std::string::npos);
}

TEST_CASE("a pass says what bounds it, times operators and draws a timeline for each rank") {
  const TempDir dir;
  const std::vector<std::string> files = {dir.write("a.txt", lines(12, 1)), dir.write("b.txt", lines(8, 2))};
  const auto communicators = collective::make_thread_communicators("profile", 1);
  for (const bool is_local : {false, true}) {
    Model model(Lookups::embedding, kMomentum);
    CollectiveOptions training;
    if (is_local) training.local = LocalStepOptions{};
    CollectiveEpoch pass(model.model.main, model.scope, {communicators[0].get()}, training);
    dataset::QueueDataset dataset(reading(files, 2));
    const EpochOptions options = {.fetch = {"loss"},
                                  .time_operators = true,
                                  .timeline = Timeline::create(dir.file(""), "t", "trainer 0")};
    const EpochResult result = pass.run(dataset, options);
    CHECK(result.batches == 10);
    CHECK(result.stages[static_cast<std::size_t>(Stage::read)] > 0.0);
    CHECK(result.stages[static_cast<std::size_t>(Stage::pull)] == 0.0);
    CHECK(result.stages[static_cast<std::size_t>(Stage::compute)] > 0.0);
    CHECK(result.stages[static_cast<std::size_t>(Stage::exchange)] > 0.0);
    CHECK(result.operators.at("mean").calls == 10);
    // By steps: two parameters, each updated by one of the two threads.
    CHECK(result.operators.at("momentum").calls == 12);
    std::ifstream file(options.timeline->path());
    const auto json = nlohmann::json::parse(file);
    std::map<std::string, int> seen;
    for (const auto& event : json.at("traceEvents")) ++seen[event.at("name").get<std::string>()];
    CHECK(seen["thread_name"] == 4);
    CHECK(seen["read"] >= 10);
    CHECK(seen["parse"] > 0);
    CHECK(seen["mean"] == 10);
    CHECK(seen["momentum"] == 12);
    CHECK(seen["exchange"] == 14);
    CHECK(seen["average"] == (is_local ? 0 : 14));
  }
}

TEST_CASE("the first NaN ends a pass that looks for it, on every rank, and names its operator and batch") {
  const TempDir dir;
  const std::vector<std::string> files = {dir.write("a.txt", lines(12, 1)),
                                          dir.write("b.txt", lines(4, 2) + "1 1 1 nan\n" + lines(7, 3))};
  for (const bool checks : {true, false}) {
    const auto communicators = collective::make_thread_communicators("nan", 2);
    std::vector<std::string> errors(2);
    {
      std::vector<std::jthread> threads;
      for (std::size_t rank = 0; rank < 2; ++rank) {
        threads.emplace_back([&, rank] {
          Model model(Lookups::embedding, kMomentum);
          CollectiveEpoch pass(model.model.main, model.scope, {communicators[rank].get()}, {});
          dataset::QueueDataset dataset(reading({files[rank]}, 2));
          try {
            pass.run(dataset, {.fetch = {"loss"}, .check_nan = checks});
          } catch (const Error& error) {
            errors[rank] = error.what();
          }
        });
      }
    }
    CHECK(errors[0].empty() == !checks);
    CHECK(errors[1].empty() == !checks);
    if (!checks) continue;
    for (const std::string& error : errors) {
      CHECK(error.find(" made NaN in '") != std::string::npos);
      CHECK(error.find("in batch 3 of thread 0") != std::string::npos);
    }
  }
}

TEST_CASE("what cannot be trained in this way is refused") {
  const auto alone = collective::make_thread_communicators("alone", 1);
  const auto error_of = [&](Lookups lookups, OptimizerConfig::Kind kind, const CollectiveOptions& options) {
    try {
      PooledModel model(lookups);
      Scope scope;
      minimize(model.main, model.startup, "loss", {.kind = kind});
      CollectiveEpoch(model.main, scope, {alone[0].get()}, options);
    } catch (const Error& error) {
      return std::string(error.what()) + " | " + error.hint();
    }
    return std::string();
  };
  using Kind = OptimizerConfig::Kind;
  CHECK(error_of(Lookups::tables, Kind::sgd, {}) ==
        "collective training of a program with sparse_embedding | use paddle.nn.Embedding, or train with a "
        "parameter server");
  CHECK(error_of(Lookups::embedding, Kind::adam, {.mean = {}, .local = LocalStepOptions{}}) ==
        "local SGD with adam: it is for SGD and Momentum | use one of these, or leave "
        "DistributedStrategy.localsgd at False");
  CHECK(error_of(Lookups::embedding, Kind::sgd, {.mean = {}, .local = LocalStepOptions{.k_steps = 0}}) ==
        "local SGD with k_steps=0 and begin_step=1 | both are at least 1");
}
