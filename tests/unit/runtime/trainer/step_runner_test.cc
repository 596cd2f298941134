// Whole steps of distributed programs against tables in this process, compared with numbers worked out by
// hand and with the same model trained by update operators.

#include "runtime/trainer/step_runner.h"

#include <cmath>
#include <fstream>
#include <map>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "ps/memory/in_process.h"
#include "runtime/base/error.h"
#include "tests/support/counting_client.h"
#include "tests/support/engine_program.h"
#include "tests/support/pooled_model.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::runtime;
using namespace fleetrun::tests;

namespace {

struct PooledBatch {
  Tensor ids, label;

  PooledBatch(const std::vector<std::int64_t>& in_ids, std::vector<std::size_t> offsets,
              const std::vector<float>& labels)
      : ids(ints({static_cast<std::int64_t>(in_ids.size()), 1}, in_ids)), label(floats({2, 1}, labels)) {
    ids.offsets = std::move(offsets);
  }
  std::map<std::string, const Tensor*> feed() const { return {{"ids", &ids}, {"label", &label}}; }
};

// `2 1 2 1 1.0 / 1 3 1 0.0 / 2 2 3 1 1.0 / 1 1 1 0.0`, two lines a batch.
std::vector<PooledBatch> pooled_batches() {
  std::vector<PooledBatch> batches;
  batches.emplace_back(std::vector<std::int64_t>{1, 2, 3}, std::vector<std::size_t>{0, 2, 3},
                       std::vector<float>{1.0f, 0.0f});
  batches.emplace_back(std::vector<std::int64_t>{2, 3, 1}, std::vector<std::size_t>{0, 2, 3},
                       std::vector<float>{1.0f, 0.0f});
  return batches;
}

}  // namespace

TEST_CASE("local SGD gives the losses and weights that Paddle gives") {
  for (const Lookups lookups : {Lookups::embedding, Lookups::rows, Lookups::tables}) {
    PooledModel model(lookups);
    Scope scope;
    const TablePlan plan =
        distribute(model.main, model.startup, "loss", {.learning_rate = 0.1}, Placement::one_process);
    CHECK(plan.entries.size() == (lookups == Lookups::tables ? 1u : 0u));
    Executor(model.startup, scope).run({});
    auto clients = ps::make_in_process(1, 1, ps::Mode::async, plan.tables());
    StepRunner runner(model.main, scope, plan, clients[0].get(), ps::Mode::async);
    std::vector<float> losses;
    for (const PooledBatch& batch : pooled_batches()) {
      runner.run(batch.feed());
      losses.push_back(floats_of(runner.tensor("loss"))[0]);
    }
    CHECK(losses[0] == doctest::Approx(6.5));
    CHECK(losses[1] == doctest::Approx(0.1352).epsilon(1e-3));
    for (const float w : floats_of(scope.tensor("w"))) CHECK(w == doctest::Approx(0.5804).epsilon(1e-4));
  }
}

TEST_CASE("tables on two servers, in both modes, train as update operators do") {
  for (const ps::Mode mode : {ps::Mode::async, ps::Mode::sync}) {
    PooledModel model(Lookups::rows);
    Scope scope;
    const TablePlan plan =
        distribute(model.main, model.startup, "loss", {.learning_rate = 0.1}, Placement::server);
    REQUIRE(plan.entries.size() == 2);
    Executor(model.startup, scope).run({});
    auto clients = ps::make_in_process(2, 1, mode, plan.tables());
    // Rows start at 0.5 by the table's initializer; the dense table by the trainer.
    clients[0]->set_dense(1, scope.tensor("w").values<float>());
    StepRunner runner(model.main, scope, plan, clients[0].get(), mode);
    std::vector<float> losses;
    for (const PooledBatch& batch : pooled_batches()) {
      runner.run(batch.feed());
      losses.push_back(floats_of(runner.tensor("loss"))[0]);
    }
    runner.end_epoch();
    CHECK(losses[0] == doctest::Approx(6.5));
    CHECK(losses[1] == doctest::Approx(0.1352).epsilon(1e-3));
    std::vector<float> w(4);
    ps::Pull pull;
    pull.dense.push_back({1, w});
    clients[0]->pull(pull);
    for (const float value : w) CHECK(value == doctest::Approx(0.5804).epsilon(1e-4));
    CHECK(clients[0]->rows(0) == 3);
  }
}

namespace {

/// Slots that share one parameter, and the padding_idx of each.
struct SharedModel {
  Program main, startup;

  explicit SharedModel(const std::vector<std::int64_t>& paddings) {
    parameter(main, startup, "shared", {10, 2}, 1.0);
    std::vector<std::string> rows;
    for (std::size_t i = 0; i < paddings.size(); ++i) {
      const std::string slot = std::string("slot").append(std::to_string(i));
      add_data(main, slot, DataType::int64, {-1, 1});
      rows.push_back(add(
          main, "sparse_embedding", {slot}, slot + "_rows",
          {{"parameter", std::string("shared")}, {"width", std::int64_t{2}}, {"padding_idx", paddings[i]}}));
    }
    add(main, "concat", rows, "joined", {{"axis", std::int64_t{-1}}});
    add(main, "sum", {"joined"}, "loss");
  }
};

}  // namespace

TEST_CASE("lookups that share a parameter are one pull and one push; padding is neither pulled nor pushed") {
  SharedModel model({0, 0, 0});
  Scope scope;
  const TablePlan plan =
      distribute(model.main, model.startup, "loss", {.learning_rate = 0.5}, Placement::server);
  REQUIRE(plan.entries.size() == 1);
  auto clients = ps::make_in_process(1, 1, ps::Mode::async, plan.tables());
  CountingClient client(*clients[0]);
  StepRunner runner(model.main, scope, plan, &client, ps::Mode::async);
  const Tensor a = ints({2, 1}, {1, 2}), b = ints({2, 1}, {2, 0}), c = ints({2, 1}, {0, 5});
  const std::map<std::string, const Tensor*> feed = {{"slot0", &a}, {"slot1", &b}, {"slot2", &c}};
  runner.run(feed);
  CHECK(client.calls == std::vector<std::string>{"pull rows", "push rows"});
  CHECK(client.sparse_pulls == 1);
  CHECK(client.keys == 4);
  CHECK(client.sparse_pushes == 1);
  CHECK(clients[0]->rows(0) == 3);
  CHECK(floats_of(runner.tensor("slot1_rows")) == std::vector<float>{1, 1, 0, 0});
  CHECK(floats_of(runner.tensor("loss"))[0] == 8.0f);
  // Row 2 was looked up twice: its gradient is 2, the others' 1.
  runner.run(feed);
  CHECK(floats_of(runner.tensor("slot0_rows")) == std::vector<float>{0.5, 0.5, 0, 0});
}

TEST_CASE("the padding of one lookup is an id to another of the same parameter") {
  SharedModel model({0, -1});
  Scope scope;
  const TablePlan plan =
      distribute(model.main, model.startup, "loss", {.learning_rate = 0.5}, Placement::server);
  auto clients = ps::make_in_process(1, 1, ps::Mode::async, plan.tables());
  StepRunner runner(model.main, scope, plan, clients[0].get(), ps::Mode::async);
  const Tensor a = ints({2, 1}, {0, 1}), b = ints({2, 1}, {2, 0});
  runner.run({{"slot0", &a}, {"slot1", &b}});
  runner.run({{"slot0", &a}, {"slot1", &b}});
  CHECK(floats_of(runner.tensor("slot0_rows")) == std::vector<float>{0, 0, 0.5, 0.5});
  CHECK(floats_of(runner.tensor("slot1_rows")) == std::vector<float>{0.5, 0.5, 0.5, 0.5});
}

TEST_CASE("ids that are computed are pulled when the program reaches them") {
  Program main, startup;
  parameter(main, startup, "emb", {10, 2}, 1.0);
  add_data(main, "ids", DataType::int64, {-1, 1});
  add(main, "scale", {"ids"}, "shifted", {{"bias", 3.0}});
  add(main, "sparse_embedding", {"shifted"}, "rows",
      {{"parameter", std::string("emb")}, {"width", std::int64_t{2}}});
  add(main, "sum", {"rows"}, "loss");
  Scope scope;
  const TablePlan plan = distribute(main, startup, "loss", {.learning_rate = 0.5}, Placement::server);
  auto clients = ps::make_in_process(1, 1, ps::Mode::async, plan.tables());
  StepRunner runner(main, scope, plan, clients[0].get(), ps::Mode::async);
  const Tensor ids = ints({2, 1}, {1, 1});
  runner.run({{"ids", &ids}});
  runner.run({{"ids", &ids}});
  CHECK(floats_of(runner.tensor("loss"))[0] == 0.0f);
  CHECK(clients[0]->rows(0) == 1);
}

TEST_CASE("a test clone pulls and pushes nothing") {
  SharedModel model({-1});
  Scope scope;
  const TablePlan plan = distribute(model.main, model.startup, "loss", {}, Placement::server);
  auto clients = ps::make_in_process(1, 1, ps::Mode::async, plan.tables());
  CountingClient client(*clients[0]);
  StepRunner runner(clone_for_test(model.main), scope, plan, &client, ps::Mode::async);
  const Tensor ids = ints({1, 1}, {4});
  runner.run({{"slot0", &ids}});
  CHECK(client.calls == std::vector<std::string>{"pull rows"});
  CHECK(floats_of(runner.tensor("loss"))[0] == 2.0f);
}

TEST_CASE("steps draw their stages, operators and waits") {
  const TempDir dir;
  PooledModel model(Lookups::rows);
  Scope scope;
  const TablePlan plan = distribute(model.main, model.startup, "loss", {}, Placement::server);
  Executor(model.startup, scope).run({});
  auto clients = ps::make_in_process(1, 1, ps::Mode::async, plan.tables());
  clients[0]->set_dense(1, scope.tensor("w").values<float>());
  const auto timeline = Timeline::create(dir.file(""), "trainer-0.steps", "trainer 0");
  StepRunner runner(model.main, scope, plan, clients[0].get(), ps::Mode::async, Track(timeline, "thread 0"));
  for (const PooledBatch& batch : pooled_batches()) runner.run(batch.feed());
  // While the runner is there: each step is written when it ends.
  timeline->close();
  std::ifstream file(timeline->path());
  const auto json = nlohmann::json::parse(file);
  std::map<std::string, int> seen;
  for (const auto& event : json.at("traceEvents")) ++seen[event.at("name").get<std::string>()];
  for (const char* name : {"pull", "compute", "push", "mean", "mean_grad"}) CHECK(seen[name] == 2);
  CHECK(seen["wait"] >= 2);
}

TEST_CASE("a plan with tables needs a client") {
  SharedModel model({-1});
  Scope scope;
  const TablePlan plan = distribute(model.main, model.startup, "loss", {}, Placement::server);
  try {
    StepRunner runner(model.main, scope, plan, nullptr, ps::Mode::async);
    FAIL("no error was thrown");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "parameter 'shared' is in a table, and there is no server");
    CHECK(error.hint() == "call fleet.init_worker() first");
  }
}

namespace {

/// batch_norm of x * w, with running moments that start at 0 and 1.
struct NormedModel {
  Program main, startup;

  NormedModel() {
    add_data(main, "x", DataType::float32, {-1, 2});
    parameter(main, startup, "w", {1}, 1.0);
    parameter(main, startup, "scale", {2}, 1.0);
    parameter(main, startup, "bias", {2}, 0.0);
    for (const char* moment : {"mean", "variance"}) {
      parameter(main, startup, moment, {2}, moment == std::string("mean") ? 0.0 : 1.0);
      for (Program* program : {&main, &startup}) {
        program->variable(moment).trainable = false;
        program->variable(moment).stop_gradient = true;
      }
    }
    add(main, "elementwise_mul", {"x", "w"}, "xw");
    main.append({"batch_norm",
                 {"xw", "scale", "bias", "mean", "variance"},
                 {"y", "mean", "variance", "batch_mean", "batch_variance"},
                 {}});
    add(main, "mean", {add(main, "square", {"y"}, "squares")}, "loss");
  }
};

}  // namespace

TEST_CASE("running moments of batch norm are in no table: each trainer has those of its own batches") {
  NormedModel model;
  const TablePlan plan =
      distribute(model.main, model.startup, "loss", {.learning_rate = 0.1}, Placement::server);
  std::vector<std::string> tables;
  for (const TablePlan::Entry& entry : plan.entries) tables.push_back(entry.parameter);
  CHECK(tables == std::vector<std::string>{"bias", "scale", "w"});
  auto clients = ps::make_in_process(1, 2, ps::Mode::async, plan.tables());
  const Tensor batches[] = {floats({2, 2}, {1, 2, 3, 4}), floats({2, 2}, {5, 6, 7, 10})};
  Scope scopes[2];
  for (std::size_t trainer = 0; trainer < 2; ++trainer) {
    Scope& scope = scopes[trainer];
    Executor(model.startup, scope).run({});
    for (const TablePlan::Entry& entry : plan.entries)
      clients[0]->set_dense(entry.table.id, scope.tensor(entry.parameter).values<float>());
    StepRunner runner(model.main, scope, plan, clients[trainer].get(), ps::Mode::async);
    runner.run({{"x", &batches[trainer]}});
  }
  // momentum 0.9: a tenth of each batch's mean and variance, and what was there before.
  CHECK(floats_of(scopes[0].tensor("mean"))[0] == doctest::Approx(0.2));
  CHECK(floats_of(scopes[0].tensor("mean"))[1] == doctest::Approx(0.3));
  CHECK(floats_of(scopes[1].tensor("mean"))[0] == doctest::Approx(0.6));
  CHECK(floats_of(scopes[1].tensor("mean"))[1] == doctest::Approx(0.8));
  CHECK(floats_of(scopes[1].tensor("variance"))[1] == doctest::Approx(0.9 + 0.4));
}
