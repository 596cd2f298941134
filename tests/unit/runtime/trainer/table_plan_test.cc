#include "runtime/trainer/table_plan.h"

#include <doctest/doctest.h>

#include <set>

#include "runtime/base/error.h"
#include "tests/support/engine_program.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::runtime;
using namespace fleetrun::tests;

namespace {

/// embedding(W) -> linear(fc.w, fc.b) -> loss, with first values in `startup`.
struct Model {
  Program main, startup;
  Scope scope;

  explicit Model(bool is_sparse, const std::string& initializer = "uniform_random") {
    startup.random_seed = 5;
    parameter("emb", {100, 4}, initializer, {{"min", -0.5}, {"max", 0.5}});
    parameter("fc.b", {1}, "fill_constant", {{"value", 0.0}});
    parameter("fc.w", {4, 1}, "gaussian_random", {{"std", 0.1}});
    add_data(main, "ids", DataType::int64, {-1, 1});
    add(main, "embedding", {"emb", "ids"}, "rows",
        {{"is_sparse", is_sparse}, {"padding_idx", std::int64_t{7}}});
    add(main, "linear", {"rows", "fc.w", "fc.b"}, "out");
    add(main, "mean", {"out"}, "loss");
  }

  void parameter(const std::string& name, const Shape& shape, const std::string& type,
                 std::map<std::string, Attribute> attributes) {
    Variable variable;
    variable.name = name;
    variable.shape = shape;
    variable.persistable = variable.trainable = true;
    variable.stop_gradient = false;
    main.add_variable(variable);
    startup.add_variable(variable);
    attributes["shape"] = shape;
    startup.append({type, {}, {name}, attributes});
  }

  bool fills(const std::string& name) const {
    for (const Operator& op : startup.operators()) {
      if (op.outputs[0] == name) return true;
    }
    return false;
  }
};

/// mean(data_norm(x)) -> normal_loss; the names of its sums.
std::set<std::string> add_data_norm(Model& model) {
  const std::vector<std::string> names{"dn.batch_size", "dn.batch_sum", "dn.batch_square_sum"};
  for (const std::string& name : names) model.parameter(name, {4}, "fill_constant", {{"value", 1.0}});
  add_data(model.main, "x", DataType::float32, {-1, 4});
  model.main.append({"data_norm", {"x", names[0], names[1], names[2], "", ""}, {"y", "means", "scales"}, {}});
  add(model.main, "mean", {"y"}, "normal_loss");
  return {names.begin(), names.end()};
}

}  // namespace

TEST_CASE("on servers every trainable parameter is a table, and a sparse embedding's has rows") {
  Model model(true);
  OptimizerConfig config{.kind = OptimizerConfig::Kind::adagrad, .learning_rate = 0.25, .epsilon = 1e-6};
  const TablePlan plan = distribute(model.main, model.startup, "loss", config, Placement::server);
  REQUIRE(plan.entries.size() == 3);
  CHECK(plan.placement == Placement::server);
  const TablePlan::Entry& rows = plan.entries[0];
  CHECK(rows.parameter == "emb");
  CHECK(rows.gradient == "emb@GRAD");
  CHECK(rows.keys == "emb@GRAD@KEYS");
  CHECK(rows.table.kind == ps::TableConfig::Kind::sparse);
  CHECK(rows.table.width == 4);
  CHECK(rows.table.rule.kind == ps::UpdateRule::Kind::adagrad);
  CHECK(rows.table.rule.learning_rate == 0.25f);
  CHECK(rows.table.rule.epsilon == 1e-6f);
  CHECK(rows.table.initializer == ps::Initializer{ps::Initializer::Kind::uniform, -0.5, 0.5, 5});
  CHECK(plan.entries[1].table.width == 1);
  CHECK(plan.entries[2].table.width == 4);
  CHECK(plan.entries[2].table.kind == ps::TableConfig::Kind::dense);
  CHECK(plan.entries[2].table.id == 2);
  CHECK_FALSE(model.fills("emb"));
  CHECK(model.fills("fc.w"));
  CHECK(model.main.operators()[0].type == "sparse_embedding");
  CHECK(std::get<std::int64_t>(model.main.operators()[0].attributes.at("padding_idx")) == 7);
}

TEST_CASE("the plan of a second process is the same") {
  Model one(true), other(true);
  const OptimizerConfig config{.kind = OptimizerConfig::Kind::adam};
  CHECK(distribute(one.main, one.startup, "loss", config, Placement::server) ==
        distribute(other.main, other.startup, "loss", config, Placement::server));
  CHECK(one.main == other.main);
}

TEST_CASE("a dense embedding on servers is a dense table") {
  Model model(false);
  const TablePlan plan = distribute(model.main, model.startup, "loss", {}, Placement::server);
  CHECK(plan.entries[0].table.kind == ps::TableConfig::Kind::dense);
  CHECK(plan.entries[0].table.width == 400);
  CHECK(model.fills("emb"));
}

TEST_CASE("in one process ordinary parameters get update operators and no table") {
  Model model(true);
  const TablePlan plan = distribute(model.main, model.startup, "loss", {}, Placement::one_process);
  CHECK(plan.entries.empty());
  int updates = 0;
  for (const Operator& op : model.main.operators()) updates += op.type == "sgd" ? 1 : 0;
  CHECK(updates == 3);
}

TEST_CASE("a table decays as its parameter does; in one process a decaying embedding is dense") {
  OptimizerConfig config{.l2_decay = 0.5};
  config.own["emb"] = {.rate_factor = 2.0, .has_decay = true, .l1_decay = 0.25};
  Model model(true);
  const TablePlan plan = distribute(model.main, model.startup, "loss", config, Placement::server);
  CHECK(plan.entries[0].table.rule.learning_rate == 0.002f);
  CHECK(plan.entries[0].table.rule.l1_decay == 0.25f);
  CHECK(plan.entries[0].table.rule.l2_decay == 0.0f);
  CHECK(plan.entries[2].table.rule.l2_decay == 0.5f);
  CHECK(plan.entries[2].gradient == "fc.w@GRAD");
  Model alone(true);
  distribute(alone.main, alone.startup, "loss", config, Placement::one_process);
  for (const Operator& op : alone.main.operators()) CHECK(op.type != "row_gradient");
}

TEST_CASE("a sparse parameter needs initial values that a table can make") {
  Model model(true);
  model.startup.operators().erase(model.startup.operators().begin());
  CHECK_THROWS_WITH_AS(distribute(model.main, model.startup, "loss", {}, Placement::server),
                       "the startup program has no initial values for 'emb'", Error);
}

namespace {

/// sparse_embedding(w) of rows of 4 -> mean, with inputs for shows and clicks.
struct ChosenModel {
  Program main, startup;

  explicit ChosenModel(std::int64_t width = 4) {
    startup.random_seed = 5;
    Variable variable;
    variable.name = "w";
    variable.shape = {10, width};
    variable.persistable = variable.trainable = true;
    variable.stop_gradient = false;
    main.add_variable(variable);
    startup.add_variable(variable);
    startup.append({"uniform_random", {}, {"w"}, {{"shape", variable.shape}, {"min", -0.5}, {"max", 0.5}}});
    add_data(main, "ids", DataType::int64, {-1, 1});
    add_data(main, "show", DataType::int64, {-1, 1});
    add_data(main, "click", DataType::int64, {-1, 1});
    add(main, "sparse_embedding", {"ids"}, "rows", {{"parameter", std::string("w")}, {"width", width}});
    add(main, "mean", {"rows"}, "loss");
  }

  TablePlan plan(const TableChoice& choice) {
    return distribute(main, startup, "loss", {}, Placement::one_process, {{"w", choice}});
  }
};

}  // namespace

TEST_CASE("a choice goes before the optimizer's rule and the parameter's initializer") {
  ChosenModel model;
  TableChoice choice;
  choice.accessor = {.kind = ps::Accessor::Kind::ctr, .embedx_threshold = 2.0f};
  choice.admission = {.kind = ps::Admission::Kind::probability, .probability = 0.5};
  choice.on_disk = true;
  choice.rule = ps::UpdateRule{.kind = ps::UpdateRule::Kind::shared_adagrad, .initial_accumulator = 3.0f};
  choice.initializer = ps::Initializer{.kind = ps::Initializer::Kind::constant, .a = 0.25};
  choice.shows = "show";
  choice.clicks = "click";
  choice.slot = 3;
  choice.times_batch = true;
  const TablePlan plan = model.plan(choice);
  REQUIRE(plan.entries.size() == 1);
  const TablePlan::Entry& entry = plan.entries[0];
  CHECK(entry.table.width == 2);
  // Column 0 is the optimizer's where only the others have a rule of their own.
  REQUIRE(entry.table.accessor.embed_rule);
  CHECK(entry.table.accessor.embed_rule->kind == ps::UpdateRule::Kind::sgd);
  choice.accessor.embed_rule = entry.table.accessor.embed_rule;
  CHECK(entry.table.accessor == choice.accessor);
  CHECK(entry.table.admission.probability == 0.5);
  CHECK(entry.table.admission.seed == 5);
  CHECK(entry.table.initializer.seed == 5);
  CHECK(entry.table.initializer.a == 0.25);
  CHECK(entry.table.rule == *choice.rule);
  CHECK(entry.table.on_disk);
  CHECK(entry.slot == 3);
  CHECK(entry.shows == "w@GRAD@KEYS@SHOWS");
  CHECK(entry.clicks == "w@GRAD@KEYS@CLICKS");
  const Operator& last = model.main.operators().back();
  CHECK(last.type == "row_statistics");
  CHECK(last.inputs == std::vector<std::string>{"show", "click", "ids"});
  CHECK(model.main.variable("w@GRAD").shape == Shape{-1, 2});
}

TEST_CASE("a choice that its program cannot honour is refused") {
  const auto refused = [](std::int64_t width, const TableChoices& choices, const char* what) {
    ChosenModel model(width);
    CHECK_THROWS_WITH_AS(distribute(model.main, model.startup, "loss", {}, Placement::one_process, choices),
                         what, Error);
  };
  refused(4, {{"v", {}}}, "a table is configured for 'v', which no sparse_embedding looks up");
  refused(2, {{"w", {.accessor = {.kind = ps::Accessor::Kind::ctr}}}},
          "sparse parameter 'w' has rows of 2, and its accessor puts show and click before the values");
  refused(4, {{"w", {.shows = "rows", .clicks = "click"}}},
          "'rows' of a ShowClickEntry has not one value for each example");
}

TEST_CASE("a schedule is for the rules of tables, but for one that a choice brings") {
  OptimizerConfig config{.kind = OptimizerConfig::Kind::adam};
  config.rate = "rate";
  const auto scheduled = [&config](const TableChoice& choice) {
    ChosenModel model;
    return distribute(model.main, model.startup, "loss", config, Placement::one_process, {{"w", choice}})
        .entries[0];
  };
  CHECK(scheduled({}).table.rule.is_scheduled);
  CHECK(scheduled({}).gradient == "w@GRAD");
  CHECK_FALSE(scheduled({.rule = ps::UpdateRule{.kind = ps::UpdateRule::Kind::sgd}}).table.rule.is_scheduled);
}

TEST_CASE("adam_d2sum is for the dense tables of adam") {
  Model model(true);
  const OptimizerConfig config{.kind = OptimizerConfig::Kind::adam, .epsilon = 1e-6, .adam_d2sum = true};
  const TablePlan plan = distribute(model.main, model.startup, "loss", config, Placement::server);
  for (const TablePlan::Entry& entry : plan.entries) {
    const bool is_dense = entry.table.kind == ps::TableConfig::Kind::dense;
    CHECK(entry.table.rule.kind ==
          (is_dense ? ps::UpdateRule::Kind::adam_d2sum : ps::UpdateRule::Kind::adam));
    CHECK(entry.table.rule.epsilon == (is_dense ? 1e-8f : 1e-6f));
  }
}

TEST_CASE("servers add up the sums of data_norm, whatever the optimizer") {
  for (const Placement placement : {Placement::server, Placement::one_process}) {
    Model model(true);
    const auto sums = add_data_norm(model);
    const OptimizerConfig config{.kind = OptimizerConfig::Kind::adam};
    const TablePlan plan = distribute(model.main, model.startup, "normal_loss", config, placement);
    std::size_t found = 0;
    for (const TablePlan::Entry& entry : plan.entries) {
      const bool is_sum = sums.contains(entry.parameter);
      found += is_sum ? 1 : 0;
      CHECK((entry.table.rule.kind == ps::UpdateRule::Kind::summary) == is_sum);
    }
    CHECK(found == (placement == Placement::server ? 3 : 0));
  }
}

TEST_CASE("programs that share servers have one table for a parameter of both") {
  Model first(true), second(true);
  add_data_norm(second);
  for (const char* name : {"fc.b", "fc.w"}) second.main.variable(name).trainable = false;
  const OptimizerConfig config{.kind = OptimizerConfig::Kind::adam};
  const OptimizerConfig other{.kind = OptimizerConfig::Kind::sgd};
  TablePlan one = distribute(first.main, first.startup, "loss", config, Placement::server);
  SUBCASE("and one that is only read is the one of the program that trains it") {
    TablePlan two =
        distribute(second.main, second.startup, "normal_loss", other, Placement::server, {}, {&one});
    two.number_beside({&one});
    two.read(one, second.main);
    std::map<std::string, ps::TableConfig> tables;
    for (const TablePlan::Entry& entry : one.entries) tables[entry.parameter] = entry.table;
    std::set<std::uint32_t> numbers;
    std::set<std::string> names;
    for (const TablePlan::Entry& entry : two.entries) {
      names.insert(entry.parameter);
      numbers.insert(entry.table.id);
      const auto found = tables.find(entry.parameter);
      CHECK(entry.gradient.empty() == (found != tables.end()));
      if (found != tables.end()) CHECK(entry.table == found->second);
    }
    CHECK(names == std::set<std::string>{"emb", "fc.w", "fc.b", "dn.batch_size", "dn.batch_sum",
                                         "dn.batch_square_sum"});
    CHECK(numbers == std::set<std::uint32_t>{0, 1, 2, 3, 4, 5});
  }
  SUBCASE("and first values that the other has taken from their start-up program") {
    Model third(true);
    third.startup = first.startup;
    const TablePlan two =
        distribute(third.main, third.startup, "loss", config, Placement::server, {}, {&one});
    CHECK(two.entries[0].table.initializer == one.entries[0].table.initializer);
  }
  SUBCASE("or are refused by the parameter's name") {
    Model third(true);
    TablePlan two = distribute(third.main, third.startup, "loss", other, Placement::server);
    CHECK_THROWS_WITH_AS(two.number_beside({&one}), doctest::Contains("two programs train 'emb' differently"),
                         Error);
  }
}
