// Operators of layers: small cases worked out by hand, and what they refuse.
// Their gradients: gradient_test.cc.

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"
#include "tests/support/engine_program.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

using Numbers = std::vector<std::int64_t>;

/// A program with data variables x0, x1, … of these shapes, and "" where the shape is {-9}.
Operator operator_over(Program& program, const std::string& type, const std::vector<Shape>& shapes,
                       std::vector<std::string> outputs, std::map<std::string, Attribute> attributes = {}) {
  Operator op{type, {}, std::move(outputs), std::move(attributes)};
  for (const Shape& shape : shapes) {
    std::string name = "x";
    name += std::to_string(op.inputs.size());
    op.inputs.push_back(shape == Shape{-9} ? "" : name);
    if (!op.inputs.back().empty()) add_data(program, name, DataType::float32, shape);
  }
  return op;
}

const Shape kMissing{-9};

/// What appending the operator throws, or nothing.
std::string refusal(const std::string& type, const std::vector<Shape>& shapes,
                    std::vector<std::string> outputs, std::map<std::string, Attribute> attributes = {}) {
  Program program;
  const Operator op = operator_over(program, type, shapes, std::move(outputs), std::move(attributes));
  try {
    program.append(op);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a convolution sums products under its window, and its shape is known before it runs") {
  Program program;
  const Operator op = operator_over(program, "conv2d", {{-1, 1, 2, 3}, {1, 1, 2, 2}, {1}}, {"y"},
                                    {{"paddings", Numbers{0, 0, 1, 0}}});
  program.append(op);
  CHECK(program.variable("y").shape == Shape{-1, 1, 1, 3});
  Scope scope;
  Executor executor(program, scope);
  const Tensor x = floats({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}),
               filter = floats({1, 1, 2, 2}, {1, 10, 100, 1000});
  const Tensor bias = floats({1}, {0.5f});
  executor.run({{"x0", &x}, {"x1", &filter}, {"x2", &bias}});
  CHECK(floats_of(executor.tensor("y")) == std::vector<float>{4010.5f, 5421.5f, 6532.5f});
}

TEST_CASE("a convolution that cannot be names what disagrees") {
  CHECK(refusal("conv2d", {{2, 3, 5}, {4, 2, 3}}, {"y"}).find("has not 2 channels") != std::string::npos);
  CHECK(refusal("conv2d", {{2, 3, 5}, {4, 3, 6}}, {"y"}).find("larger than the padded input") !=
        std::string::npos);
  CHECK(refusal("conv2d", {{2, 3, 5}, {4, 3, 3, 3}}, {"y"}).find("needs the shape") != std::string::npos);
  CHECK(refusal("conv2d", {{2, 4, 5}, {3, 2, 3}}, {"y"}, {{"groups", std::int64_t{2}}})
            .find("do not divide into 2 groups") != std::string::npos);
  CHECK(refusal("conv2d", {{2, 3, 5}, {4, 3, 3}, {3}}, {"y"}).find("bias must have the shape [4]") !=
        std::string::npos);
  CHECK(refusal("conv2d", {{2, 3, 5}, {4, 3, 3}}, {"y"}, {{"strides", Numbers{1, 1}}})
            .find("'strides' has 2 numbers, the kernel needs 1") != std::string::npos);
  CHECK(refusal("conv2d", {{2, 3, 5}, {4, 3, 3}}, {"y"}, {{"strides", Numbers{0}}}).find("are 1 to") !=
        std::string::npos);
}

TEST_CASE("an input that is too small when the program runs is refused") {
  Program program;
  program.append(operator_over(program, "conv2d", {{-1, 1, -1}, {1, 1, 3}}, {"y"}));
  program.append({"max_pool2d", {"x0"}, {"z", "mask"}, {{"ksize", Numbers{3}}}});
  Scope scope;
  Executor executor(program, scope);
  const Tensor x = floats({1, 1, 2}, {1, 2}), filter = floats({1, 1, 3}, {1, 1, 1});
  CHECK_THROWS_WITH_AS(executor.run({{"x0", &x}, {"x1", &filter}}),
                       doctest::Contains("the filter [1, 1, 3] is larger than the padded input [1, 1, 2]"),
                       Error);
}

TEST_CASE("pools take the largest or the mean, and say where the largest was") {
  Program program;
  program.append(
      operator_over(program, "max_pool2d", {{-1, 1, 2, 3}}, {"largest", "mask"}, {{"ksize", Numbers{2, 2}}}));
  program.append({"avg_pool2d", {"x0"}, {"mean"}, {{"ksize", Numbers{2, 2}}}});
  Scope scope;
  Executor executor(program, scope);
  const Tensor x = floats({1, 1, 2, 3}, {1, 9, 3, 4, 5, 7});
  executor.run({{"x0", &x}});
  CHECK(floats_of(executor.tensor("largest")) == std::vector<float>{9, 9});
  const auto mask = executor.tensor("mask").values<std::int32_t>();
  CHECK(std::vector<std::int32_t>(mask.begin(), mask.end()) == std::vector<std::int32_t>{1, 1});
  CHECK(floats_of(executor.tensor("mean")) == std::vector<float>{4.75f, 6.0f});
  CHECK(refusal("avg_pool2d", {{1, 1, 4}}, {"y"}, {{"ksize", Numbers{2, 2}}}).find("of 4 dimensions") !=
        std::string::npos);
  CHECK(refusal("avg_pool2d", {{1, 1, 4}}, {"y"}, {{"ksize", Numbers{0}}}).find("'ksize' is [0]") !=
        std::string::npos);
}

TEST_CASE("batch norm keeps running moments while training, and takes them in a test") {
  Program program;
  Scope scope;
  const Operator op =
      operator_over(program, "batch_norm", {{-1, 1}, {1}, {1}, {1}, {1}},
                    {"y", "mean", "variance", "batch_mean", "batch_variance"}, {{"momentum", 0.75}});
  program.append(op);
  Executor training(program, scope), test(clone_for_test(program), scope);
  const Tensor x = floats({2, 1}, {1, 5}), scale = floats({1}, {2}), bias = floats({1}, {1});
  const Tensor mean = floats({1}, {7}), variance = floats({1}, {4});
  const std::map<std::string, const Tensor*> feed{
      {"x0", &x}, {"x1", &scale}, {"x2", &bias}, {"x3", &mean}, {"x4", &variance}};
  training.run(feed);
  CHECK(floats_of(training.tensor("mean")) == std::vector<float>{6.0f});
  CHECK(floats_of(training.tensor("variance")) == std::vector<float>{4.0f});
  CHECK(floats_of(training.tensor("y"))[0] == doctest::Approx(-1.0).epsilon(1e-5));
  test.run(feed);
  CHECK(floats_of(test.tensor("y"))[1] == doctest::Approx(-1.0).epsilon(1e-5));
  CHECK(refusal("batch_norm", {{2, 3}, {2}, {3}, {3}, {3}}, {"y", "a", "b", "c", "d"})
            .find("'x1' has not 3 values") != std::string::npos);
  CHECK(refusal("prelu", {{2, 3}, {2}}, {"y"}, {{"mode", std::string("channel")}}).find("has not 3 values") !=
        std::string::npos);
}

TEST_CASE("behind its end a sequence's outputs are 0 and its state stays") {
  Program program;
  Operator op = operator_over(program, "recurrent",
                              {{-1, 3, 1}, kMissing, kMissing, {1, 1}, {1, 1}, kMissing, kMissing},
                              {"y", "last", "", "kept"}, {{"mode", std::string("RNN_RELU")}});
  add_data(program, "lengths", DataType::int64, {-1});
  op.inputs.push_back("lengths");
  program.append(op);
  Scope scope;
  Executor executor(program, scope);
  const Tensor x = floats({2, 3, 1}, {1, 2, 3, 4, 5, 6}), one = floats({1, 1}, {1}),
               half = floats({1, 1}, {0.5f});
  const Tensor lengths = ints({2}, {3, 1}), short_lengths = ints({1}, {3});
  executor.run({{"x0", &x}, {"x3", &one}, {"x4", &half}, {"lengths", &lengths}});
  CHECK(floats_of(executor.tensor("y")) == std::vector<float>{1, 2.5f, 4.25f, 4, 0, 0});
  CHECK(floats_of(executor.tensor("last")) == std::vector<float>{4.25f, 4});
  CHECK_THROWS_WITH_AS(executor.run({{"x0", &x}, {"x3", &one}, {"x4", &half}, {"lengths", &short_lengths}}),
                       doctest::Contains("1 lengths for 2 sequences"), Error);
}

TEST_CASE("a recurrence that cannot be names what disagrees") {
  const auto refused = [](const char* mode, Shape x, Shape ih, Shape hh) {
    return refusal("recurrent", {x, kMissing, kMissing, ih, hh, kMissing, kMissing, kMissing},
                   {"y", "h", "c", "kept"}, {{"mode", std::string(mode)}});
  };
  CHECK(refused("GRU", {2, 3, 4}, {6, 4}, {6, 2}).empty());
  CHECK(refused("LSTM", {2, 3, 4}, {6, 4}, {6, 2}).find("weight_hh has not the shape [8, 2]") !=
        std::string::npos);
  CHECK(refused("GRU", {2, 3, 5}, {6, 4}, {6, 2}).find("weight_ih has not the shape [6, 5]") !=
        std::string::npos);
  CHECK(refused("GRU", {2, 3}, {6, 4}, {6, 2}).find("[batch, steps, width]") != std::string::npos);
  CHECK(refused("SRU", {2, 3, 4}, {6, 4}, {6, 2}).find("no mode 'SRU'") != std::string::npos);
}

namespace {

/// An operator over inputs of these shapes; the batch is -1.
/// The first `by_batch` of its outputs have a row for each example.
struct Shaped {
  std::string type;
  std::vector<Shape> shapes;
  std::size_t outputs;
  std::size_t by_batch;
  std::map<std::string, Attribute> attributes = {};
};

std::vector<Shaped> shaped() {
  const Shape channels{4}, gates{6};
  return {
      {"conv2d", {{-1, 4, 5, 6}, {3, 4, 2, 3}, {3}}, 1, 1, {{"strides", Numbers{2, 1}}}},
      {"max_pool2d",
       {{-1, 4, 5}},
       2,
       2,
       {{"ksize", Numbers{2}}, {"strides", Numbers{2}}, {"ceil_mode", true}}},
      {"avg_pool2d", {{-1, 4, 5, 6}}, 1, 1, {{"ksize", Numbers{2, 2}}}},
      {"layer_norm", {{-1, 4, 5}, {20}, {20}}, 3, 3},
      {"batch_norm", {{-1, 4, 5}, channels, channels, channels, channels}, 5, 1},
      {"prelu", {{-1, 4, 5}, {4}}, 1, 1, {{"mode", std::string("channel")}}},
      {"recurrent",
       {{-1, 3, 5}, {-1, 2}, kMissing, {6, 5}, {6, 2}, gates, gates, kMissing},
       4,
       2,
       {{"mode", std::string("GRU")}}},
  };
}

}  // namespace

TEST_CASE("the shape that is known before is the one that comes, for any batch and for none") {
  for (const Shaped& each : shaped()) {
    Program program;
    std::vector<std::string> outputs;
    for (std::size_t i = 0; i < each.outputs; ++i)
      outputs.push_back(std::string("y").append(std::to_string(i)));
    const Operator op = operator_over(program, each.type, each.shapes, outputs, each.attributes);
    program.append(op);
    Scope scope;
    Executor executor(program, scope);
    for (const std::int64_t batch : {3, 0, 1}) {
      std::map<std::string, Tensor> fed;
      std::map<std::string, const Tensor*> feed;
      for (std::size_t i = 0; i < each.shapes.size(); ++i) {
        if (op.inputs[i].empty()) continue;
        Shape shape = each.shapes[i];
        if (shape[0] < 0) shape[0] = batch;
        const std::vector<float> halves(static_cast<std::size_t>(count(shape)), 0.5f);
        feed[op.inputs[i]] = &fed.emplace(op.inputs[i], floats(shape, halves)).first->second;
      }
      executor.run(feed);
      for (std::size_t i = 0; i < each.by_batch; ++i) {
        Shape wanted = program.variable(outputs[i]).shape;
        INFO(each.type << " of " << batch);
        CHECK(wanted[0] == -1);
        wanted[0] = batch;
        CHECK(executor.tensor(outputs[i]).shape() == wanted);
      }
    }
  }
}
