// A model of two large dense layers, whose gradients leave one after the other
// while the backward pass computes.
#include "runtime/trainer/dense_exchange.h"

#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "dataset/queue/queue_dataset.h"
#include "ps/memory/in_process.h"
#include "runtime/trainer/dataset_trainer.h"
#include "tests/support/counting_client.h"
#include "tests/support/pooled_model.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::runtime;
using namespace fleetrun::tests;

namespace {

constexpr std::int64_t kInputs = 16, kHidden = 8192, kBatches = 5;

/// x[16] → 8192 → 1, square error: half a MiB of weights, a few KiB, Adam on servers.
struct LayeredModel {
  Program main, startup;
  Scope scope;
  TablePlan plan;

  LayeredModel() {
    startup.random_seed = 5;
    weight("w1", {kInputs, kHidden});
    weight("w2", {kHidden, 1});
    add_data(main, "x", DataType::float32, {-1, kInputs});
    add_data(main, "label", DataType::float32, {-1, 1});
    add(main, "matmul", {"x", "w1"}, "hidden");
    add(main, "tanh", {"hidden"}, "bent");
    add(main, "matmul", {"bent", "w2"}, "out");
    add(main, "square_error_cost", {"out", "label"}, "error");
    add(main, "mean", {"error"}, "loss");
    plan = distribute(main, startup, "loss", {.kind = OptimizerConfig::Kind::adam, .learning_rate = 0.01},
                      Placement::server);
    Executor(startup, scope).run({});
  }

  void weight(const std::string& name, const Shape& shape) {
    parameter(main, startup, name, shape, 0.0);
    Operator& first = startup.operators().back();
    first.type = "uniform_random";
    first.attributes = {{"shape", shape}, {"min", -0.1}, {"max", 0.1}};
  }
};

/// Both weights after one pass.
std::vector<float> train(ps::Mode mode, const std::string& file, std::vector<std::string>* calls = nullptr,
                         std::uint32_t pull_dense_every = 1) {
  LayeredModel model;
  auto clients = ps::make_in_process(2, 1, mode, model.plan.tables());
  for (const TablePlan::Entry& entry : model.plan.entries)
    clients[0]->set_dense(entry.table.id, model.scope.tensor(entry.parameter).values<float>());
  CountingClient client(*clients[0]);
  dataset::QueueDatasetOptions options;
  options.slots = {{"x", dataset::SlotType::float32, true, kInputs},
                   {"label", dataset::SlotType::float32, true, 1}};
  options.batch_size = 4;
  options.files = {file};
  dataset::QueueDataset dataset(options);
  run_epoch(model.main, model.scope, dataset, model.plan, &client,
            {.mode = mode, .pull_dense_every = pull_dense_every});
  clients[0]->goodbye();
  if (calls) *calls = client.calls;
  std::vector<float> weights = floats_of(model.scope.tensor("w1"));
  const std::vector<float> rest = floats_of(model.scope.tensor("w2"));
  weights.insert(weights.end(), rest.begin(), rest.end());
  return weights;
}

std::string text() {
  std::string lines;
  for (int row = 0; row < 4 * kBatches; ++row) {
    lines += std::to_string(kInputs);
    for (int i = 0; i < kInputs; ++i) lines += " " + std::to_string((row * 31 + i * 17) % 19 - 9);
    lines += " 1 " + std::to_string(row % 3) + "\n";
  }
  return lines;
}

}  // namespace

TEST_CASE(
    "one trainer's dense values are never stale: asynchronous training is synchronous training, bit for "
    "bit") {
  const TempDir dir;
  const std::string file = dir.write("x.txt", text());
  const std::vector<float> sync = train(ps::Mode::sync, file);
  for (int run = 0; run < 3; ++run) {
    const std::vector<float> async = train(ps::Mode::async, file);
    REQUIRE(async.size() == sync.size());
    CHECK(std::memcmp(async.data(), sync.data(), sync.size() * sizeof(float)) == 0);
  }
  const std::vector<float> start = floats_of(LayeredModel().scope.tensor("w1"));
  CHECK(std::memcmp(start.data(), sync.data(), start.size() * sizeof(float)) != 0);
}

TEST_CASE("small gradients travel with the next ones, and each push is followed by its pull") {
  const TempDir dir;
  std::vector<std::string> calls;
  train(ps::Mode::async, dir.write("x.txt", text()), &calls);
  // w2 is small and waits for w1: one group.
  std::vector<std::string> expected = {"pull dense"};
  for (int i = 0; i < kBatches; ++i) expected.insert(expected.end(), {"push dense", "pull dense"});
  expected.push_back("pull dense");  // for the scope
  CHECK(calls == expected);
}

TEST_CASE("values are pulled after every so many pushes where a script says so") {
  const TempDir dir;
  std::vector<std::string> calls;
  train(ps::Mode::async, dir.write("x.txt", text()), &calls, 2);
  CHECK(calls == std::vector<std::string>{"pull dense", "push dense", "push dense", "pull dense",
                                          "push dense", "push dense", "pull dense", "push dense",
                                          "pull dense"});
}
