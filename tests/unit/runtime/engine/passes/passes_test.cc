// Whole programs trained with and without each pass: every parameter, and what is fetched, bit for bit the
// same; with linear_sgd but for the last bits.

#include "runtime/engine/passes/passes.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "tests/support/ctr_model.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

CtrShape small_shape() {
  CtrShape shape;
  shape.slots = 5;
  shape.width = 3;
  shape.dense = 2;
  shape.rows = 40;
  shape.layers = {8, 6};
  return shape;
}

/// Rows that depend on the key, and what is asked for.
struct KeyRows final : RowSource {
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> asked;

  void pull_rows(const std::string& parameter, std::span<const std::uint64_t> keys,
                 std::span<float> rows) override {
    asked.emplace_back(parameter, std::vector<std::uint64_t>(keys.begin(), keys.end()));
    const std::size_t width = keys.empty() ? 0 : rows.size() / keys.size();
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i] = 0.01f * static_cast<float>(keys[i / width]) + 0.001f * static_cast<float>(i % width);
  }
};

std::vector<std::string> types_of(const Program& program) {
  std::vector<std::string> types;
  for (const Operator& op : program.operators()) types.push_back(op.type);
  return types;
}

std::size_t count_of(const Program& program, const std::string& type) {
  const auto types = types_of(program);
  return static_cast<std::size_t>(std::count(types.begin(), types.end(), type));
}

/// All persistable values after seven batches, the last of them shorter, and the fetched ones after each.
std::map<std::string, std::vector<float>> train(const Program& startup, const Program& main,
                                                const CtrShape& shape, const Kept& fetched) {
  Scope scope;
  Executor(startup, scope).run({});
  KeyRows rows;
  Executor executor(main, scope, shape.outside ? &rows : nullptr);
  std::map<std::string, std::vector<float>> values;
  auto batches = ctr_batches(shape, 6, 13);
  batches.push_back(std::move(ctr_batches(shape, 1, 5).front()));
  for (const auto& batch : batches) {
    executor.run(feed_of(batch));
    for (const std::string& name : fetched) {
      const auto now = floats_of(executor.tensor(name));
      values[name].insert(values[name].end(), now.begin(), now.end());
    }
  }
  for (const std::string& name : scope.names()) {
    if (scope.find(name)->type() == DataType::float32) values[name] = floats_of(*scope.find(name));
  }
  return values;
}

using Values = std::map<std::string, std::vector<float>>;

void check_near(const Values& found, const Values& expected) {
  REQUIRE(found.size() == expected.size());
  for (const auto& [name, values] : expected) {
    INFO(name);
    REQUIRE(found.at(name).size() == values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK(found.at(name)[i] == doctest::Approx(values[i]).epsilon(1e-5));
  }
}

void check_same(const CtrShape& shape, const OptimizerConfig& optimizer, const Kept& fetched) {
  const CtrModel model(shape, optimizer);
  const auto expected = train(model.startup, model.main, shape, fetched);
  for (const Pass& pass : all_passes()) {
    INFO(std::string(pass.name));
    const Values found = train(model.startup, pass.apply(model.main, fetched), shape, fetched);
    if (pass.name == "linear_sgd") {
      check_near(found, expected);
    } else {
      CHECK(found == expected);
    }
  }
  CHECK(train(model.startup, optimize(model.main, fetched, {"linear_sgd"}), shape, fetched) == expected);
  check_near(train(model.startup, optimize(model.main, fetched), shape, fetched), expected);
}

}  // namespace

TEST_CASE("a network with one id in each slot trains to the same bits with every pass") {
  check_same(small_shape(), {.learning_rate = 0.1}, {"loss", "cost"});
  check_same(small_shape(), {.kind = OptimizerConfig::Kind::adam, .learning_rate = 0.1, .lazy_rows = true},
             {"loss"});
}

TEST_CASE("pooled ids, some examples without any, train to the same bits with every pass") {
  CtrShape shape = small_shape();
  shape.pooled = true;
  shape.activation = "tanh";
  check_same(shape, {.learning_rate = 0.1}, {"loss"});
}

TEST_CASE("rows from outside give the same bits, and are asked for in the same order") {
  CtrShape shape = small_shape();
  shape.outside = true;
  shape.activation = "sigmoid";
  check_same(shape, {.learning_rate = 0.1}, {"loss", "emb@GRAD"});
  const CtrModel model(shape);
  KeyRows plain, fused;
  Scope scope;
  Executor(model.startup, scope).run({});
  const auto batches = ctr_batches(shape, 1, 4);
  Executor(model.main, scope, &plain).run(feed_of(batches.front()));
  Executor(optimize(model.main, {"loss"}), scope, &fused).run(feed_of(batches.front()));
  CHECK(plain.asked.size() == 5);
  CHECK(fused.asked == plain.asked);
}

TEST_CASE("all passes together leave four operators of the forward network's ten") {
  const CtrShape shape = small_shape();
  const Program before = CtrModel(shape).main;
  const Program after = optimize(before, {"loss"});
  CHECK(count_of(before, "embedding") == 5);
  CHECK(count_of(before, "relu") == 2);
  CHECK(count_of(after, "lookup_concat") == 1);
  CHECK(count_of(after, "lookup_concat_rows") == 1);
  CHECK(count_of(after, "linear_act") == 2);
  CHECK(count_of(after, "linear_act_sgd") == 2);
  for (const char* gone : {"embedding", "reshape", "concat", "relu", "concat_grad", "reshape_like",
                           "row_gradient", "relu_grad"}) {
    INFO(gone);
    CHECK(count_of(after, gone) == 0);
  }
}

TEST_CASE("a variable that is fetched is there, whatever would have taken it away") {
  const CtrShape shape = small_shape();
  const CtrModel model(shape);
  for (const char* name :
       {"C1.rows", "C1.flat", "x", "fc0", "fc0.act", "fc1@GRAD", "C1.rows@GRAD", "x@GRAD", "out"}) {
    INFO(name);
    const Kept fetched{"loss", name};
    CHECK(train(model.startup, optimize(model.main, fetched, {"linear_sgd"}), shape, fetched) ==
          train(model.startup, model.main, shape, fetched));
  }
}

TEST_CASE("passes can be left out by name, and each is seen before and after") {
  const Program program = CtrModel(small_shape()).main;
  CHECK(optimize(program, {"loss"}, {"all"}) == program);
  CHECK(count_of(optimize(program, {"loss"}, {"linear_act"}), "relu") == 2);
  std::vector<std::string> seen;
  optimize(program, {"loss"}, {"memory"},
           [&](std::string_view name, const Program& before, const Program& after) {
             seen.push_back(std::string(name) + (to_string(before) == to_string(after) ? "" : " changes"));
           });
  CHECK(seen == std::vector<std::string>{"dead_code", "linear_act changes", "linear_sgd changes",
                                         "batch_norm_act", "lookup_concat changes"});
  try {
    optimize(program, {}, {"linear_akt"});
    FAIL("there is no such pass");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("there is no pass 'linear_akt' to leave out") != std::string::npos);
    CHECK(error.hint() ==
          "there are all, dead_code, linear_act, linear_sgd, batch_norm_act, lookup_concat, memory");
  }
}

TEST_CASE("operators say what they ask a row source for, fused or not, in the order of the calls") {
  CtrShape shape = small_shape();
  shape.outside = true;
  const Program plain = CtrModel(shape).main;
  const Program fused = optimize(plain, {"loss"});
  const auto ids_of = [](const Program& program) {
    std::vector<std::string> ids;
    for (const Operator& op : program.operators()) {
      for (const OutsideLookup& lookup : outside_lookups(op))
        ids.push_back(lookup.parameter + "/" + lookup.ids);
    }
    return ids;
  };
  CHECK(ids_of(plain) == std::vector<std::string>{"emb/C0", "emb/C1", "emb/C2", "emb/C3", "emb/C4"});
  CHECK(ids_of(fused) == ids_of(plain));
}
