// Networks with batch norm trained fused and unfused: every parameter,
// moment and fetched value bit for bit the same.

#include <algorithm>

#include <doctest/doctest.h>

#include "runtime/engine/optimizer.h"
#include "runtime/engine/passes/passes.h"
#include "runtime/engine/random.h"
#include "tests/support/engine_program.h"

using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

std::vector<float> random_values(std::uint64_t seed, std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(uniform(seed, i) * 4.0 - 2.0));
  return values;
}

/// x -> batch_norm -> activation -> mean of squares, over x [batch, 3] or [batch, 3, 4].
struct Network {
  Program program, startup;
  Scope scope;
  Shape one;

  Network(const std::string& activation, const Shape& of_one, bool trains = true,
          std::map<std::string, Attribute> attributes = {})
      : one(of_one) {
    Shape shape{-1};
    shape.insert(shape.end(), one.begin(), one.end());
    add_data(program, "x", DataType::float32, shape);
    add_parameter(program, scope, "w", floats({1}, {0.75f}));
    add_parameter(program, scope, "scale", floats({3}, {0.5f, -1.5f, 2}));
    add_parameter(program, scope, "bias", floats({3}, {0.25f, 0, -0.125f}));
    for (const char* moment : {"mean", "variance"}) {
      add_parameter(program, scope, moment, floats({3}, {1, 1, 1}));
      program.variable(moment).trainable = false;
    }
    add(program, "elementwise_mul", {"x", "w"}, "wx");
    program.append({"batch_norm",
                    {"wx", "scale", "bias", "mean", "variance"},
                    {"z", "mean", "variance", "batch_mean", "batch_variance"},
                    std::move(attributes)});
    add(program, activation, {"z"}, "y");
    add(program, "mean", {add(program, "square", {"y"}, "squares")}, "loss");
    if (trains) minimize(program, startup, "loss", {.learning_rate = 0.1});
  }

  /// Persistable values after three batches of different sizes, and the fetched ones after each.
  std::map<std::string, std::vector<float>> run(const Program& as, const Kept& fetched) {
    std::map<std::string, std::vector<float>> before, values;
    for (const std::string& name : scope.names()) before[name] = floats_of(scope.tensor(name));
    Executor executor(as, scope);
    for (const std::int64_t examples : {7, 1, 5}) {
      Shape shape{examples};
      shape.insert(shape.end(), one.begin(), one.end());
      Tensor x(DataType::float32, shape);
      std::ranges::copy(random_values(static_cast<std::uint64_t>(examples), x.size()),
                        x.values<float>().begin());
      executor.run({{"x", &x}});
      for (const std::string& name : fetched) {
        for (const float value : floats_of(executor.tensor(name))) values[name].push_back(value);
      }
    }
    for (auto& [name, value] : before) {
      values[name] = floats_of(scope.tensor(name));
      std::ranges::copy(value, scope.tensor(name).values<float>().begin());
    }
    return values;
  }
};

std::size_t count_of(const Program& program, const std::string& type) {
  return static_cast<std::size_t>(std::ranges::count(program.operators(), type, &Operator::type));
}

void check_same(Network& network, const Kept& fetched) {
  const Program fused = fuse_batch_norm_activation(network.program, fetched);
  CHECK(count_of(fused, "batch_norm_act") == 1);
  CHECK(count_of(fused, "batch_norm") == 0);
  CHECK(count_of(fused, "batch_norm_grad") == 0);
  const auto expected = network.run(network.program, fetched);
  CHECK(network.run(fused, fetched) == expected);
  CHECK(network.run(optimize(network.program, fetched), fetched) == expected);
}

}  // namespace

TEST_CASE("batch norm and relu, sigmoid or tanh train to the same bits as one operator") {
  for (const char* activation : {"relu", "sigmoid", "tanh"}) {
    INFO(activation);
    Network rows(activation, {3}), images(activation, {3, 4});
    check_same(rows, {"loss", "y"});
    check_same(images, {"loss", "y", "batch_mean"});
    CHECK(count_of(optimize(rows.program, {"loss"}), "batch_norm_act_grad") == 1);
  }
}

TEST_CASE("channels in front or behind, and running moments, are the same too") {
  Network behind("relu", {4, 3}, true, {{"channels_last", true}});
  check_same(behind, {"loss"});
  Network running("tanh", {3}, true, {{"use_global_stats", true}});
  check_same(running, {"loss"});
}

TEST_CASE("a program that does not train is fused, and moments that are trained on stay where they are") {
  Network test("sigmoid", {3}, false, {{"is_test", true}});
  check_same(test, {"y"});
  Network trained("relu", {3});
  const auto values = trained.run(fuse_batch_norm_activation(trained.program, {"loss"}), {"loss"});
  CHECK(values.at("mean") != std::vector<float>{1, 1, 1});
}

TEST_CASE("other activations, and what is read elsewhere, keep their own operators") {
  const auto fuses = [](const Network& network, const Kept& kept) {
    return count_of(fuse_batch_norm_activation(network.program, kept), "batch_norm_act") > 0;
  };
  CHECK(!fuses(Network("exp", {3}), {"loss"}));
  const Network network("relu", {3});
  CHECK(fuses(network, {"loss"}));
  CHECK(!fuses(network, {"z"}));
  CHECK(!fuses(network, {"z@GRAD"}));
  Network twice("relu", {3}, false);
  add(twice.program, "tanh", {"z"}, "other");
  CHECK(!fuses(twice, {"loss", "other"}));
}

TEST_CASE("the pass can be left out, and shows the program before and after") {
  const Network network("relu", {3});
  CHECK(count_of(optimize(network.program, {"loss"}, {"batch_norm_act"}), "batch_norm") == 1);
  bool seen = false;
  optimize(network.program, {"loss"}, {},
           [&](std::string_view name, const Program& before, const Program& after) {
             if (name != "batch_norm_act") return;
             seen = true;
             CHECK(to_string(before).find("batch_norm_act") == std::string::npos);
             CHECK(to_string(after).find("batch_norm_act_grad") != std::string::npos);
           });
  CHECK(seen);
}
