// Replicas of programs with tables beside one thread with the whole batch.

#include "runtime/trainer/replica_tables.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "ps/memory/in_process.h"
#include "runtime/base/error.h"
#include "runtime/trainer/replica_runner.h"
#include "runtime/trainer/step_runner.h"
#include "tests/support/counting_client.h"
#include "tests/support/engine_program.h"
#include "tests/support/errors.h"
#include "tests/support/pooled_model.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::runtime;
using namespace fleetrun::tests;

namespace {

constexpr int kSteps = 5;

/// Six examples; the last has no ids.
struct Batch {
  Tensor ids = ints({9, 1}, {1, 2, 3, 1, 2, 2, 5, 7, 1});
  Tensor label = floats({6, 1}, {1, 0, 0, 1, 1, 0});
  ReplicaRunner::Feed feed{{"ids", &ids}, {"label", &label}};

  Batch() { ids.offsets = {0, 2, 3, 6, 7, 9, 9}; }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
};

/// The pooled model with its tables in this process.
struct Job {
  PooledModel model;
  Scope scope;
  TablePlan plan;
  ps::Mode mode;
  std::unique_ptr<ps::Client> client;

  Job(Placement placement, ps::Mode in_mode, OptimizerConfig::Kind kind)
      : model(placement == Placement::server ? Lookups::rows : Lookups::tables),
        plan(distribute(model.main, model.startup, "loss", {.kind = kind, .learning_rate = 0.05}, placement)),
        mode(in_mode),
        client(std::move(ps::make_in_process(1, 1, mode, plan.tables()).front())) {
    Executor(model.startup, scope).run({});
    for (const TablePlan::Entry& entry : plan.entries) {
      if (entry.table.kind == ps::TableConfig::Kind::dense)
        client->set_dense(entry.table.id, scope.tensor(entry.parameter).values<float>());
    }
  }

  /// w, and the rows of all ids, as they are now.
  std::vector<float> values() {
    std::vector<float> values(4), rows(32);
    const std::vector<std::uint64_t> keys{0, 1, 2, 3, 4, 5, 6, 7};
    ps::Pull pull;
    pull.create = false;
    for (const TablePlan::Entry& entry : plan.entries) {
      if (entry.table.kind == ps::TableConfig::Kind::dense) {
        pull.dense.push_back({entry.table.id, values});
      } else {
        pull.sparse.push_back({entry.table.id, keys, rows});
      }
    }
    if (pull.dense.empty()) values = floats_of(scope.tensor("w"));
    client->pull(pull);
    values.insert(values.end(), rows.begin(), rows.end());
    return values;
  }
};

void check_close(const std::vector<float>& one, const std::vector<float>& other) {
  REQUIRE(one.size() == other.size());
  for (std::size_t i = 0; i < one.size(); ++i)
    CHECK(one[i] == doctest::Approx(other[i]).epsilon(1e-5).scale(1.0));
}

struct Case {
  Placement placement;
  ps::Mode mode;
  OptimizerConfig::Kind kind;
};

const std::vector<Case> kCases = {
    {Placement::one_process, ps::Mode::async, OptimizerConfig::Kind::sgd},
    {Placement::server, ps::Mode::async, OptimizerConfig::Kind::sgd},
    {Placement::server, ps::Mode::async, OptimizerConfig::Kind::adam},
    {Placement::server, ps::Mode::sync, OptimizerConfig::Kind::sgd},
    {Placement::server, ps::Mode::half_async, OptimizerConfig::Kind::adagrad},
};

}  // namespace

TEST_CASE("replicas of a program with tables train as one thread with the whole batch, in every mode") {
  const Batch batch;
  for (const Case& each : kCases) {
    Job alone(each.placement, each.mode, each.kind);
    StepRunner runner(alone.model.main, alone.scope, alone.plan, alone.client.get(), alone.mode);
    const std::vector<float> start = alone.values();
    for (int i = 0; i < kSteps; ++i) runner.run(batch.feed);
    runner.end_epoch();
    const std::vector<float> expected = alone.values();
    CHECK(expected != start);
    for (const std::size_t replicas : {1, 2, 3}) {
      Job job(each.placement, each.mode, each.kind);
      ReplicaRunner several(job.model.main, job.scope, {.replicas = replicas}, job.plan, *job.client,
                            job.mode);
      for (int i = 0; i < kSteps; ++i) several.run(batch.feed);
      several.end_epoch();
      check_close(job.values(), expected);
      CHECK(several.active() == replicas);
      CHECK(several.merged("out").shape() == Shape{6, 1});
    }
  }
}

TEST_CASE("two runs on replicas give the same bits") {
  const Batch batch;
  std::vector<std::vector<float>> values;
  for (int run = 0; run < 2; ++run) {
    Job job(Placement::server, ps::Mode::sync, OptimizerConfig::Kind::sgd);
    ReplicaRunner runner(job.model.main, job.scope, {.replicas = 3}, job.plan, *job.client, job.mode);
    for (int i = 0; i < kSteps; ++i) runner.run(batch.feed);
    runner.end_epoch();
    values.push_back(job.values());
  }
  CHECK(values[0] == values[1]);
}

TEST_CASE("a step pulls dense values once, rows for each replica, and pushes once") {
  const Batch batch;
  Job job(Placement::server, ps::Mode::async, OptimizerConfig::Kind::sgd);
  CountingClient client(*job.client);
  ReplicaRunner runner(job.model.main, job.scope, {.replicas = 2}, job.plan, client, job.mode);
  runner.run(batch.feed);
  CHECK(client.calls.size() == 4);
  CHECK(client.calls.front() == "pull dense");
  CHECK(client.calls[1] == "pull rows");
  CHECK(client.calls[2] == "pull rows");
  CHECK(client.keys == 9);
  CHECK(client.sparse_pushes == 1);
}

TEST_CASE("a program without gradients pushes nothing, and makes no rows") {
  const Batch batch;
  Job job(Placement::server, ps::Mode::async, OptimizerConfig::Kind::sgd);
  const Program test = clone_for_test(job.model.main);
  ReplicaRunner runner(test, job.scope, {.replicas = 2}, job.plan, *job.client, job.mode);
  runner.run(batch.feed);
  CHECK(runner.merged("out").shape() == Shape{6, 1});
  CHECK(job.client->rows(0) == 0);
}

TEST_CASE("with gradient scale one the gradients of replicas are added up") {
  const Batch batch;
  Job job(Placement::server, ps::Mode::async, OptimizerConfig::Kind::sgd),
      twice(Placement::server, ps::Mode::async, OptimizerConfig::Kind::sgd);
  ReplicaRunner mean(job.model.main, job.scope, {.replicas = 2}, job.plan, *job.client, job.mode);
  ReplicaRunner sum(twice.model.main, twice.scope, {.replicas = 2, .scale = GradientScale::one}, twice.plan,
                    *twice.client, twice.mode);
  const std::vector<float> start = job.values();
  mean.run(batch.feed);
  sum.run(batch.feed);
  const std::vector<float> once = job.values(), double_step = twice.values();
  for (std::size_t i = 0; i < start.size(); ++i)
    CHECK(double_step[i] - start[i] == doctest::Approx(2 * (once[i] - start[i])).epsilon(1e-4).scale(1.0));
}

TEST_CASE("an error of one replica is the step's, and the next step goes on") {
  const Batch batch;
  Job job(Placement::server, ps::Mode::async, OptimizerConfig::Kind::sgd);
  ReplicaRunner runner(job.model.main, job.scope, {.replicas = 2}, job.plan, *job.client, job.mode);
  const std::vector<float> start = job.values();
  const ReplicaRunner::Feed lacks{{"label", &batch.label}};
  const Error error = error_of([&] { runner.run(std::vector<ReplicaRunner::Feed>{batch.feed, lacks}); });
  CHECK(std::string(error.what()) == "'ids' is not fed");
  CHECK(job.values() == start);
  runner.run(batch.feed);
  CHECK(job.values() != start);
}
