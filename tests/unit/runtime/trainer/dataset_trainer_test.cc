// Passes over small files, with tables in this process.

#include "runtime/trainer/dataset_trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <regex>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "dataset/queue/queue_dataset.h"
#include "ps/memory/in_process.h"
#include "runtime/base/error.h"
#include "tests/support/counting_client.h"
#include "tests/support/errors.h"
#include "tests/support/pooled_model.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::runtime;
using namespace fleetrun::tests;

namespace {

const char* const kGolden = "2 1 2 1 1.0\n1 3 1 0.0\n2 2 3 1 1.0\n1 1 1 0.0\n";

dataset::QueueDatasetOptions pooled_options(std::vector<std::string> files, std::size_t threads = 1) {
  dataset::QueueDatasetOptions options;
  options.slots = {{"ids", dataset::SlotType::int64, false, 1},
                   {"label", dataset::SlotType::float32, true, 1}};
  options.batch_size = 2;
  options.threads = threads;
  options.files = std::move(files);
  return options;
}

/// A pooled model on servers of this process, with random first values.
struct Cluster {
  PooledModel model{Lookups::rows};
  Scope scope;
  TablePlan plan;
  std::vector<std::unique_ptr<ps::Client>> clients;

  explicit Cluster(ps::Mode mode, Placement placement = Placement::server) {
    model.startup.random_seed = 11;
    for (Operator& op : model.startup.operators()) {
      op.type = "uniform_random";
      op.attributes = {{"shape", op.attributes.at("shape")}, {"min", -0.5}, {"max", 0.5}};
    }
    plan = distribute(model.main, model.startup, "loss", {.learning_rate = 0.05}, placement);
    Executor(model.startup, scope).run({});
    clients = ps::make_in_process(2, 1, mode, plan.tables());
    for (const TablePlan::Entry& entry : plan.entries) {
      if (entry.table.kind != ps::TableConfig::Kind::dense) continue;
      clients[0]->set_dense(entry.table.id, scope.tensor(entry.parameter).values<float>());
    }
  }

  /// The first rows of the embedding, then w.
  std::vector<float> tables() {
    std::vector<std::uint64_t> keys = {1, 2, 3, 4, 5};
    std::vector<float> rows(keys.size() * 4), w(4);
    ps::Pull pull;
    pull.sparse.push_back({0, keys, rows});
    pull.dense.push_back({1, w});
    clients[0]->pull(pull);
    rows.insert(rows.end(), w.begin(), w.end());
    return rows;
  }
};

std::string lines(int count, int seed) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const int a = 1 + (i * 7 + seed) % 5, b = 1 + (i * 3 + seed) % 5;
    text += "2 " + std::to_string(a) + " " + std::to_string(b) + " 1 " + std::to_string((a + b) % 2) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("a pass in one process gives the losses that Paddle gives, and prints them") {
  for (const Lookups lookups : {Lookups::embedding, Lookups::rows, Lookups::tables}) {
    const TempDir dir;
    dataset::QueueDataset dataset(pooled_options({dir.write("train.txt", kGolden)}));
    PooledModel model(lookups);
    Scope scope;
    const TablePlan plan =
        distribute(model.main, model.startup, "loss", {.learning_rate = 0.1}, Placement::one_process);
    Executor(model.startup, scope).run({});
    auto clients = ps::make_in_process(1, 1, ps::Mode::async, plan.tables());
    std::vector<std::string> printed;
    EpochOptions options;
    options.fetch = {"loss", "out"};
    options.fetch_info = {"loss", "prediction"};
    options.print_period = 1;
    options.print = [&printed](const std::string& line) { printed.push_back(line); };
    const EpochResult result = run_epoch(model.main, scope, dataset, plan, clients[0].get(), options);
    CHECK(result.examples == 4);
    CHECK(result.batches == 2);
    CHECK(result.fetch_means[0] == doctest::Approx((6.5 + 0.1352) / 2).epsilon(1e-4));
    CHECK(std::isnan(result.fetch_means[1]));
    for (const float w : floats_of(scope.tensor("w"))) CHECK(w == doctest::Approx(0.5804).epsilon(1e-4));
    REQUIRE(printed.size() == 2);
    const std::regex form(
        R"(time: \[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\], batch: \[1\], loss\[1\]:\[6\.5\], prediction\[2\]:\[4,2\])");
    CHECK(std::regex_match(printed[0], form));
    CHECK(printed[1].find("batch: [2], loss[1]:[0.1352") != std::string::npos);
  }
}

TEST_CASE("lines are printed each print_period batches, and every batch is a sign of life") {
  const TempDir dir;
  dataset::QueueDataset dataset(pooled_options({dir.write("train.txt", lines(11, 0))}));
  Cluster cluster(ps::Mode::async);
  std::vector<std::string> printed;
  EpochOptions options{.fetch = {"loss"}, .fetch_info = {}, .print_period = 2};
  options.print = [&printed](const std::string& line) { printed.push_back(line); };
  int batches = 0;
  std::size_t examples = 0;
  options.on_batch = [&](std::size_t rows) {
    ++batches;
    examples += rows;
  };
  std::vector<TrainingEvent> events;
  options.on_event = [&events](const TrainingEvent& event) { events.push_back(event); };
  const EpochResult result =
      run_epoch(cluster.model.main, cluster.scope, dataset, cluster.plan, cluster.clients[0].get(), options);
  CHECK(result.examples == 11);
  CHECK(result.batches == 6);
  CHECK(batches == 6);
  CHECK(examples == 11);
  REQUIRE(events.size() == 3);
  CHECK(events[2].batch == 6);
  CHECK(events[2].values[0].first == "loss");
  REQUIRE(printed.size() == 3);
  CHECK(printed[2].find("batch: [6], loss[1]:[") != std::string::npos);
}

TEST_CASE("two synchronous passes with one seed give identical tables") {
  const TempDir dir;
  const std::vector<std::string> files = {dir.write("a.txt", lines(9, 1)), dir.write("b.txt", lines(6, 2))};
  std::vector<float> first;
  for (int run = 0; run < 2; ++run) {
    Cluster cluster(ps::Mode::sync);
    dataset::QueueDataset dataset(pooled_options(files));
    EpochOptions options{.mode = ps::Mode::sync};
    const auto before = cluster.tables();
    run_epoch(cluster.model.main, cluster.scope, dataset, cluster.plan, cluster.clients[0].get(), options);
    run_epoch(cluster.model.main, cluster.scope, dataset, cluster.plan, cluster.clients[0].get(), options);
    const auto after = cluster.tables();
    CHECK(before != after);
    // The scope has what the servers have.
    CHECK(floats_of(cluster.scope.tensor("w"))[2] == after[22]);
    if (run == 0) first = after;
    CHECK(std::memcmp(first.data(), after.data(), first.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("synchronous training on servers is the training of one process") {
  const TempDir dir;
  const std::string file = dir.write("a.txt", lines(24, 1));
  Cluster servers(ps::Mode::sync);
  Cluster local(ps::Mode::async, Placement::one_process);
  // The same first rows: the table's, which its initializer makes.
  const auto start = servers.tables();
  for (std::size_t i = 0; i < 20; ++i) local.scope.tensor("emb").values<float>()[4 + i] = start[i];
  for (Cluster* cluster : {&servers, &local}) {
    dataset::QueueDataset dataset(pooled_options({file}));
    EpochOptions options{.mode = cluster == &servers ? ps::Mode::sync : ps::Mode::async};
    run_epoch(cluster->model.main, cluster->scope, dataset, cluster->plan, cluster->clients[0].get(),
              options);
  }
  const auto after = servers.tables();
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(floats_of(local.scope.tensor("emb"))[4 + i] == doctest::Approx(after[i]).epsilon(1e-5));
  }
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(floats_of(local.scope.tensor("w"))[i] == doctest::Approx(after[20 + i]).epsilon(1e-5));
  }
}

TEST_CASE("threads with more and with fewer batches end a synchronous pass together") {
  const TempDir dir;
  dataset::QueueDataset dataset(
      pooled_options({dir.write("a.txt", lines(20, 1)), dir.write("b.txt", lines(3, 2))}, 2));
  Cluster cluster(ps::Mode::sync);
  EpochOptions options{.fetch = {"loss"}, .mode = ps::Mode::sync};
  const EpochResult result =
      run_epoch(cluster.model.main, cluster.scope, dataset, cluster.plan, cluster.clients[0].get(), options);
  CHECK(result.examples == 23);
  CHECK(result.batches == 12);
  CHECK(result.fetch_means[0] > 0.0);
}

TEST_CASE(
    "on servers in async mode rows are pulled a step ahead and dense values are not; in one process nothing "
    "is") {
  const TempDir dir;
  const std::string file = dir.write("a.txt", lines(6, 1));
  using Calls = std::vector<std::string>;
  for (const auto& [servers, counts] : {std::pair(true, false), {true, true}, {false, false}}) {
    PooledModel model(Lookups::tables);
    Scope scope;
    const TablePlan plan = distribute(model.main, model.startup, "loss", {.learning_rate = 0.01},
                                      servers ? Placement::server : Placement::one_process);
    Executor(model.startup, scope).run({});
    auto clients = ps::make_in_process(1, 1, ps::Mode::async, plan.tables());
    if (servers) clients[0]->set_dense(1, scope.tensor("w").values<float>());
    CountingClient client(*clients[0]);
    client.counts_steps = counts;
    dataset::QueueDataset dataset(pooled_options({file}));
    run_epoch(model.main, scope, dataset, plan, &client, {});
    // Rows are pulled one step ahead, after the push of the step before;
    // dense values as soon as they were pushed.
    const Calls ahead = {"pull dense", "pull rows",                                // for step 1
                         "pull rows",  "push dense", "pull dense", "push rows",    // for step 2, of step 1
                         "pull rows",  "push dense", "pull dense", "push rows",    // for step 3, of step 2
                         "push dense", "pull dense", "push rows",  "pull dense"};  // of step 3; for the scope
    // A step that servers count is one push.
    const Calls whole = {"pull dense",      "pull rows",                       // for step 1
                         "pull rows",       "push rows dense", "pull dense",   // for step 2, of step 1
                         "pull rows",       "push rows dense", "pull dense",   // for step 3, of step 2
                         "push rows dense", "pull dense",      "pull dense"};  // of step 3; for the scope
    const Calls exact = {"pull rows", "push rows", "pull rows", "push rows", "pull rows", "push rows"};
    CHECK(client.calls == (!servers ? exact : counts ? whole : ahead));
  }
}

TEST_CASE("infer changes nothing, though the program has gradients") {
  const TempDir dir;
  const std::string file = dir.write("a.txt", lines(8, 1));
  Cluster cluster(ps::Mode::async);
  CountingClient client(*cluster.clients[0]);
  const auto before = cluster.tables();
  dataset::QueueDataset dataset(pooled_options({file}));
  EpochOptions options{.fetch = {"loss"}, .train = false};
  const EpochResult result =
      run_epoch(cluster.model.main, cluster.scope, dataset, cluster.plan, &client, options);
  CHECK(result.examples == 8);
  CHECK(result.fetch_means[0] > 0.0);
  CHECK(cluster.tables() == before);
  CHECK(std::none_of(client.calls.begin(), client.calls.end(),
                     [](const std::string& call) { return call.starts_with("push"); }));

  Cluster local(ps::Mode::async, Placement::one_process);
  const auto w = floats_of(local.scope.tensor("w"));
  dataset::QueueDataset again(pooled_options({file}));
  run_epoch(local.model.main, local.scope, again, local.plan, nullptr, options);
  CHECK(floats_of(local.scope.tensor("w")) == w);
}

TEST_CASE("a bad line ends all threads, in both modes, and is the error") {
  for (const ps::Mode mode : {ps::Mode::async, ps::Mode::sync}) {
    const TempDir dir;
    const std::string bad = dir.write("bad.txt", lines(4, 1) + "2 1\n");
    dataset::QueueDataset dataset(pooled_options({dir.write("good.txt", lines(4000, 2)), bad}, 2));
    Cluster cluster(mode);
    EpochOptions options{.mode = mode};
    const Error error = error_of([&] {
      run_epoch(cluster.model.main, cluster.scope, dataset, cluster.plan, cluster.clients[0].get(), options);
    });
    CHECK(error.kind() == ErrorKind::data);
    CHECK(std::string(error.what()).find("bad.txt:5") != std::string::npos);
  }
}

TEST_CASE("a data variable must be a slot of its type") {
  const TempDir dir;
  const std::string file = dir.write("a.txt", lines(2, 1));
  Cluster cluster(ps::Mode::async);
  const auto refusal = [&](const dataset::QueueDatasetOptions& options) {
    dataset::QueueDataset dataset(options);
    return error_of([&] {
      run_epoch(cluster.model.main, cluster.scope, dataset, cluster.plan, cluster.clients[0].get(), {});
    });
  };
  auto options = pooled_options({file});
  options.slots.pop_back();
  const Error missing = refusal(options);
  CHECK(std::string(missing.what()) == "the program reads 'label', which is not a slot of the dataset");
  CHECK(missing.hint() == "add it to the dataset's use_var");
  options = pooled_options({file});
  options.slots[0].dense = true;
  CHECK(std::string(refusal(options).what()) ==
        "slot 'ids' has dense int64 values, the variable is int64 with lod_level 1");
}

namespace {

/// Of a trainer that was started again: the process before had done so many steps of each thread.
class RestartedClient final : public CountingClient {
 public:
  RestartedClient(ps::Client& inner, std::vector<std::uint64_t> before)
      : CountingClient(inner), before_(std::move(before)) {}

  std::uint64_t skip_steps(std::uint32_t thread) override { return before_.at(thread); }

 private:
  std::vector<std::uint64_t> before_;
};

}  // namespace

TEST_CASE("batches of before a restart are passed over, thread by thread") {
  const TempDir dir;
  Cluster cluster(ps::Mode::sync);
  dataset::QueueDataset dataset(
      pooled_options({dir.write("a.txt", lines(8, 1)), dir.write("b.txt", lines(6, 2))}, 2));
  const auto pass = [&](std::vector<std::uint64_t> before) {
    RestartedClient client(*cluster.clients[0], std::move(before));
    std::vector<std::string> printed;
    EpochOptions options{.fetch = {"loss"}, .print_period = 1, .mode = ps::Mode::sync};
    options.print = [&](const std::string& line) { printed.push_back(line); };
    const EpochResult result =
        run_epoch(cluster.model.main, cluster.scope, dataset, cluster.plan, &client, options);
    return std::pair(result, printed);
  };

  const auto [some, printed] = pass({3, 1});
  CHECK(some.skipped == 4);
  CHECK(some.batches == 3);
  CHECK(some.examples == 6);
  CHECK(!some.skipped_whole);
  REQUIRE(printed.size() == 1);
  CHECK(printed[0].find("batch: [4]") != std::string::npos);

  const auto [none, nothing_printed] = pass({4, 3});
  CHECK(none.batches == 0);
  CHECK(nothing_printed.empty());

  const std::vector<float> before = cluster.tables();
  const EpochResult whole = pass({ps::StepClient::kWholeEpoch, ps::StepClient::kWholeEpoch}).first;
  CHECK(whole.skipped_whole);
  CHECK(whole.examples == 0);
  CHECK(std::isnan(whole.fetch_means.at(0)));
  CHECK(cluster.tables() == before);

  const Error error = error_of([&] { pass({5, 1}); });
  CHECK(error.kind() == ErrorKind::data);
  CHECK(std::string(error.what()) ==
        "thread 0 had trained 5 batches of this pass before its trainer was started again, and now finds 4");
}

TEST_CASE("a pass says how long each stage and, when asked, each operator took, and draws them") {
  const TempDir dir;
  dataset::QueueDataset dataset(pooled_options({dir.write("train.txt", lines(11, 0))}));
  Cluster cluster(ps::Mode::async);
  EpochOptions options{.fetch = {"loss"},
                       .time_operators = true,
                       .timeline = Timeline::create(dir.file(""), "t", "trainer 2")};
  const EpochResult result =
      run_epoch(cluster.model.main, cluster.scope, dataset, cluster.plan, cluster.clients[0].get(), options);
  for (const Stage stage : {Stage::read, Stage::pull, Stage::compute, Stage::push})
    CHECK(result.stages[static_cast<std::size_t>(stage)] > 0.0);
  CHECK(result.stages[static_cast<std::size_t>(Stage::exchange)] == 0.0);
  CHECK(result.operators.at("mean").calls == 6);
  CHECK(result.operators.at("matmul_grad").calls == 6);
  std::ifstream file(options.timeline->path());
  const auto events = nlohmann::json::parse(file).at("traceEvents");
  std::map<std::string, int> seen;
  for (const auto& event : events) ++seen[event.at("name").get<std::string>()];
  CHECK(seen["compute"] == 6);
  // By the thread, and by the thread that exchanges for it:
  // rows, and the dense parameters of the model by themselves.
  CHECK(seen["push"] == 7 + 12);
  CHECK(seen["parse"] > 0);
  CHECK(seen["next batch"] == 7);
  CHECK(seen["wait"] > 0);
  CHECK(seen["thread_name"] == 3);
  CHECK(seen["mean"] == 6);
  CHECK(seen["process_name"] == 1);
}

TEST_CASE("the first NaN ends a pass that looks for it, and only that") {
  const TempDir dir;
  const std::string file = dir.write("train.txt", "1 1 1 1.0\n1 2 1 1.0\n1 1 1 1.0\n1 2 1 nan\n");
  for (const bool checks : {true, false}) {
    dataset::QueueDataset dataset(pooled_options({file}));
    PooledModel model(Lookups::rows);
    Scope scope;
    const TablePlan plan =
        distribute(model.main, model.startup, "loss", {.learning_rate = 0.1}, Placement::one_process);
    Executor(model.startup, scope).run({});
    const EpochOptions options{.fetch = {"loss"}, .check_nan = checks};
    if (!checks) {
      CHECK(std::isnan(run_epoch(model.main, scope, dataset, plan, nullptr, options).fetch_means[0]));
      continue;
    }
    try {
      run_epoch(model.main, scope, dataset, plan, nullptr, options);
      FAIL("the second batch has a NaN");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("square_error_cost made NaN in 'error', in batch 2 of thread 0") !=
            std::string::npos);
      CHECK(error.hint().find("lower the learning rate, clip gradients, or look at that batch") == 0);
    }
  }
}

TEST_CASE("passes over the program change no bit of what a training ends with") {
  const TempDir dir;
  const std::string file = dir.write("train.txt", lines(40, 3));
  std::vector<std::vector<float>> tables;
  for (const std::set<std::string>& off : {std::set<std::string>{}, std::set<std::string>{"all"}}) {
    dataset::QueueDataset dataset(pooled_options({file}));
    Cluster cluster(ps::Mode::sync);
    EpochOptions options{.fetch = {"loss"}, .mode = ps::Mode::sync, .passes_off = off};
    run_epoch(cluster.model.main, cluster.scope, dataset, cluster.plan, cluster.clients[0].get(), options);
    tables.push_back(cluster.tables());
  }
  CHECK(tables[0] == tables[1]);
}
