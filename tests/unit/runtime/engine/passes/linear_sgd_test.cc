// When a step of SGD goes into the product that makes its gradient, and that it is the same step.

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "runtime/engine/optimizer.h"
#include "runtime/engine/passes/passes.h"
#include "tests/support/engine_program.h"

using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

/// Two layers, relu between them, with parameters w0, b0, w1, b1.
struct Network {
  Program program, startup;
  Scope scope;

  explicit Network(const OptimizerConfig& config, bool shared = false) {
    add_data(program, "x", DataType::float32, {-1, 2});
    add_parameter(program, scope, "w0", floats({2, 2}, {0.5f, -1, 1.5f, 2}));
    add_parameter(program, scope, "b0", floats({2}, {0.25f, -0.5f}));
    add_parameter(program, scope, "w1", floats({2, 2}, {1, -0.75f, 0.125f, 2}));
    add_parameter(program, scope, "b1", floats({2}, {0.5f, 0.5f}));
    if (!config.rate.empty()) add_rate(config.rate);
    add(program, "linear", {"x", "w0", "b0"}, "z");
    add(program, "relu", {"z"}, "h");
    add(program, "linear", {"h", shared ? "w0" : "w1", "b1"}, "y");
    add(program, "mean", {"y"}, "loss");
    minimize(program, startup, "loss", config);
    Executor(startup, scope).run({});
  }
  void add_rate(const std::string& name) {
    Variable variable;
    variable.name = name;
    variable.shape = {1};
    variable.persistable = true;
    program.add_variable(variable);
    scope.tensor(name).resize(DataType::float32, {1});
    scope.tensor(name).values<float>()[0] = 0.5f;
  }
  std::size_t count(const std::string& type, const Kept& kept = {"loss"}) const {
    const Program fused = optimize(program, kept);
    return static_cast<std::size_t>(std::ranges::count(fused.operators(), type, &Operator::type));
  }
};

/// Parameters and x's gradient's maker's results after three steps.
std::vector<float> train(Network& network, const Program& program) {
  Executor executor(program, network.scope);
  const Tensor x = floats({3, 2}, {0.5f, -1.5f, 2, 0.125f, -0.25f, 1});
  std::vector<float> values;
  for (int step = 0; step < 3; ++step) {
    executor.run({{"x", &x}});
    values.push_back(floats_of(executor.tensor("loss"))[0]);
  }
  for (const char* name : {"w0", "b0", "w1", "b1"}) {
    const auto found = floats_of(*network.scope.find(name));
    values.insert(values.end(), found.begin(), found.end());
  }
  return values;
}

void check_same(const OptimizerConfig& config, const Kept& kept) {
  Network plain(config), fused(config);
  const auto expected = train(plain, plain.program);
  const auto found = train(fused, optimize(fused.program, kept));
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO(i);
    CHECK(std::abs(found[i] - expected[i]) <= 1e-6f * std::max(1.0f, std::abs(expected[i])));
  }
}

}  // namespace

TEST_CASE("steps of SGD become part of the gradients, and are the same steps") {
  const OptimizerConfig sgd{.learning_rate = 0.3};
  const Network network(sgd);
  CHECK(network.count("sgd") == 0);
  CHECK(network.count("linear_sgd") == 1);
  CHECK(network.count("linear_act_sgd") == 1);
  CHECK(optimize(network.program, {"loss"}, {"linear_sgd"}).operators() ==
        share_memory(
            fuse_lookup_concat(fuse_linear_activation(remove_dead_code(network.program, {"loss"}), {"loss"}),
                               {"loss"}),
            {"loss"})
            .operators());
  check_same(sgd, {"loss"});
}

TEST_CASE("a schedule's rate is that of the step") {
  const OptimizerConfig sgd{.learning_rate = 0.3, .rate = "rate"};
  CHECK(Network(sgd).count("sgd") == 0);
  check_same(sgd, {"loss"});
}

TEST_CASE("a gradient that is read keeps its step apart, the other's goes") {
  const OptimizerConfig sgd{.learning_rate = 0.3};
  const Network network(sgd);
  CHECK(network.count("sgd", {"loss", "w0@GRAD"}) == 1);
  CHECK(network.count("sgd", {"loss", "b0@GRAD"}) == 1);
  CHECK(network.count("sgd", {"loss", "w0@GRAD", "b0@GRAD"}) == 2);
  CHECK(network.count("linear_act_grad", {"loss", "w0@GRAD", "b0@GRAD"}) == 1);
  check_same(sgd, {"loss", "w0@GRAD"});
  check_same(sgd, {"loss", "b1@GRAD"});
}

TEST_CASE("other optimizers and decay step by themselves") {
  CHECK(Network({.kind = OptimizerConfig::Kind::adam}).count("adam") == 4);
  CHECK(Network({.kind = OptimizerConfig::Kind::adam}).count("linear_sgd") == 0);
  CHECK(Network({.learning_rate = 0.1, .l2_decay = 0.01}).count("sgd") == 4);
  CHECK(Network({.learning_rate = 0.1, .l1_decay = 0.01}).count("sgd") == 4);
}

TEST_CASE("a weight of two layers is stepped after both") {
  const Network network({.learning_rate = 0.3}, true);
  // w0 by itself; b0 and b1 with their gradients.
  CHECK(network.count("sgd") == 1);
}

TEST_CASE("a parameter that is read between its gradient and its step is stepped after that") {
  Network network({.learning_rate = 0.3});
  Program program;
  for (const auto& [name, variable] : network.program.variables()) program.add_variable(variable);
  for (const Operator& op : network.program.operators()) {
    if (op.type == "sgd" && op.inputs[0] == "w1") {
      Variable seen = program.variable("y");
      seen.name = "seen";
      program.add_variable(seen);
      program.operators().push_back({"exp", {"w1"}, {"seen"}, {}});
    }
    program.operators().push_back(op);
  }
  const Program fused = fuse_linear_sgd(program, {"loss", "seen"});
  CHECK(std::ranges::count(fused.operators(), "sgd", &Operator::type) == 1);
}
