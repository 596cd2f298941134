// Values that no kernel may touch: shapes that only the run shows to disagree, kept values of another shape,
// sizes beyond all memory, and the integer divisions at which the processor stops a program.

#include <doctest/doctest.h>

#include <functional>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/engine/executor.h"
#include "runtime/engine/operators.h"
#include "tests/support/engine_program.h"
#include "tests/support/errors.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

using Attributes = std::map<std::string, Attribute>;
using Sizes = std::vector<std::int64_t>;

/// One operator over inputs of which only the number of dimensions is known.
struct One {
  Program program;
  Scope scope;
  std::map<std::string, Tensor> fed;

  One(const std::string& type, std::map<std::string, Tensor> inputs, const std::vector<std::string>& order,
      const Attributes& attributes = {}, std::size_t outputs = 1)
      : fed(std::move(inputs)) {
    for (const auto& [name, tensor] : fed)
      add_data(program, name, tensor.type(), Shape(tensor.shape().size(), -1),
               tensor.offsets.empty() ? 0 : 1);
    Operator op{
        .type = type, .inputs = order, .outputs = {}, .attributes = attributes, .where = "train.py:3"};
    for (std::size_t i = 0; i < outputs; ++i) op.outputs.push_back("out" + std::to_string(i));
    program.append(op);
  }
  Tensor run() {
    std::map<std::string, const Tensor*> feed;
    for (const auto& [name, tensor] : fed) feed[name] = &tensor;
    Executor executor(program, scope);
    executor.run(feed);
    return std::move(executor.tensor("out0"));
  }
  /// Checks that the error tells the line of the script.
  std::string refusal() {
    const Error error = error_of([this] { run(); });
    CHECK(error.context().back() == "train.py:3");
    return error.what();
  }
};

template <class... Fed>
std::map<std::string, Tensor> inputs(Fed&&... fed) {
  std::map<std::string, Tensor> all;
  (all.emplace(std::forward<Fed>(fed).first, std::forward<Fed>(fed).second), ...);
  return all;
}

std::pair<std::string, Tensor> zeros(const std::string& name, const Shape& shape) {
  return {name, floats(shape, std::vector<float>(static_cast<std::size_t>(count(shape))))};
}

template <class T>
std::vector<T> divided(const std::string& type, DataType of, const std::vector<T>& x,
                       const std::vector<T>& y) {
  const Shape shape{static_cast<std::int64_t>(x.size())};
  One one(type, inputs(std::pair("x", tensor_of(of, shape, x)), std::pair("y", tensor_of(of, shape, y))),
          {"x", "y"});
  const Tensor out = one.run();
  const auto values = out.values<T>();
  return {values.begin(), values.end()};
}

template <class T>
void check_divisions(DataType of) {
  constexpr T kMin = std::numeric_limits<T>::min();
  const std::vector<T> x{kMin, kMin, 7, -7, 7, -7, 8}, y{-1, 0, 2, 2, -2, -2, 2};
  CHECK(divided("elementwise_div", of, x, y) == std::vector<T>{kMin, 0, 3, -3, -3, 3, 4});
  CHECK(divided("elementwise_floordiv", of, x, y) == std::vector<T>{kMin, 0, 3, -4, -4, 3, 4});
  CHECK(divided("elementwise_mod", of, x, y) == std::vector<T>{0, 0, 1, 1, -1, -1, 0});
}

}  // namespace

TEST_CASE("integers divided by 0, and the least one by -1, have values") {
  check_divisions<std::int64_t>(DataType::int64);
  check_divisions<std::int32_t>(DataType::int32);
}

TEST_CASE("operands whose sizes only the run shows are compared before they are read") {
  CHECK(One("take_along_axis", inputs(zeros("x", {2, 3}), std::pair("index", ints({5, 2}, Sizes(10)))),
            {"x", "index"}, {{"axis", std::int64_t{1}}})
            .refusal() == "take_along_axis(x, index): the input is [2, 3], the index [5, 2]");
  CHECK(
      One("layer_norm", inputs(zeros("x", {2, 100}), zeros("scale", {4})), {"x", "scale"}, {}, 3).refusal() ==
      "layer_norm(x, scale): the scale is [4], and 100 values are needed");
  CHECK(One("prelu", inputs(zeros("x", {2, 100}), zeros("alpha", {4})), {"x", "alpha"},
            {{"mode", std::string("element")}})
            .refusal() == "prelu(x, alpha): the weight is [4], and 100 values are needed");
  CHECK(One("linear", inputs(zeros("x", {2, 3}), zeros("w", {3, 100}), zeros("b", {2})), {"x", "w", "b"})
            .refusal() == "linear(x, w, b): the bias is [2] for 100 columns");
}

TEST_CASE("a filter or a recurrent weight of unknown sizes is refused, or compared in the run") {
  CHECK(error_of([] {
          One("conv2d", inputs(zeros("x", {1, 2, 3, 3}), zeros("w", {1, 100, 2, 2})), {"x", "w"});
        }).what() == std::string("conv2d: the sizes of the filter must be known, and 1 or more: x float32 "
                                 "[-1, -1, -1, -1], w float32 [-1, -1, -1, -1]"));
  One recurrent("recurrent", inputs(zeros("x", {2, 5, 3}), zeros("ih", {4, 100}), zeros("hh", {4, 4})),
                {"x", "", "", "ih", "hh", "", "", ""}, {{"mode", std::string("RNN_TANH")}}, 4);
  CHECK(recurrent.refusal() == "recurrent(x, , , ih, hh, , , ): 'ih' is [4, 100], not [4, 3]");
}

TEST_CASE("sequences that do not end with the rows are refused, fed or made") {
  Program program;
  Scope scope;
  add_data(program, "x", DataType::float32, {-1, 4}, 1);
  add_data(program, "y", DataType::float32, {-1, 4});
  add(program, "elementwise_add", {"x", "y"}, "more");
  add(program, "sequence_pool", {"more"}, "pooled");
  Executor executor(program, scope);
  Tensor x = floats({1, 4}, {1, 2, 3, 4});
  const Tensor y = floats({3, 4}, std::vector<float>(12));
  const auto refusal = [&] {
    return std::string(error_of([&] { executor.run({{"x", &x}, {"y", &y}}); }).what());
  };
  x.offsets = {0, 1};
  CHECK(refusal() == "sequence_pool(more): the input is [3, 4], its sequences have 1 values");
  for (const std::vector<std::size_t>& wild :
       {std::vector<std::size_t>{0, 9, 1}, std::vector<std::size_t>{1, 1}, std::vector<std::size_t>{0, 2}}) {
    x.offsets = wild;
    CHECK(refusal() == "'x' is declared float32 [-1, 4], but was fed float32 [1, 4]");
  }
}

TEST_CASE("a kept value has the type and the shape that the program says") {
  Program program;
  Scope scope;
  add_data(program, "x", DataType::float32, {-1, 3});
  add_parameter(program, scope, "w", floats({3, 2}, {1, 2, 3, 4, 5, 6}));
  add(program, "matmul", {"x", "w"}, "out");
  Executor executor(program, scope);
  const Tensor x = floats({1, 3}, {1, 1, 1});
  executor.run({{"x", &x}});
  CHECK(floats_of(executor.tensor("out")) == std::vector<float>{9, 12});
  scope.tensor("w") = floats({3, 9}, std::vector<float>(27));
  CHECK(error_of([&] {
          executor.run({{"x", &x}});
        }).what() == std::string("'w' is float32 [3, 2] in the program, and float32 [3, 9] in the scope"));
  scope.tensor("w") = ints({3, 2}, Sizes(6));
  CHECK(error_of([&] {
          executor.run({{"x", &x}});
        }).what() == std::string("'w' is float32 [3, 2] in the program, and int64 [3, 2] in the scope"));
}

TEST_CASE("a size beyond all memory is an error of the operator, and the next run goes on") {
  const auto filled = [](const Sizes& shape) { return One("fill_constant", {}, {}, {{"shape", shape}}); };
  const std::int64_t large = std::int64_t{1} << 40;
  CHECK(filled({large, large}).refusal() ==
        "a tensor of float32 cannot have the shape [1099511627776, 1099511627776]");
  CHECK(filled({large, 0, large}).run().size() == 0);
  CHECK(count(Shape{large, large}) == std::numeric_limits<std::int64_t>::max());
  Tensor tensor(DataType::float32, {2});
  CHECK_THROWS_AS(tensor.resize(DataType::float32, {large, large}), Error);
  CHECK(tensor.size() == 2);
}

TEST_CASE("ranges and repeats without an end are refused") {
  CHECK(error_of([] {
          One("reshape", inputs(zeros("x", {4})), {"x"}, {{"shape", Sizes{std::int64_t{1} << 62, 4}}}).run();
        }).what() == std::string("reshape(x): [-1] cannot become [4611686018427387904, 4]"));
  using Numbers = std::vector<double>;
  CHECK(error_of([] {
          One("range", {}, {}, {{"values", Numbers{0, 1e300, 1e-300}}});
        }).what() ==
        std::string("range(): there is no end to its values, or one of its numbers is not finite"));
  CHECK(error_of([] {
          One("tile", inputs(zeros("x", {5})), {"x"}, {{"repeat_times", Sizes{3689348814741910325}}}).run();
        }).what() == std::string("tile(x): [5] cannot be repeated [3689348814741910325] times"));
  CHECK(error_of([] {
          One("permutation", {}, {}, {{"n", std::int64_t{-3}}});
        }).what() == std::string("permutation: there is no order of -3 numbers"));
}

TEST_CASE("a window larger than any image is refused") {
  const std::int64_t large = std::int64_t{1} << 62;
  const auto pooled = [](const Attributes& attributes) {
    return std::string(error_of([&] {
                         One("avg_pool2d", inputs(zeros("x", {1, 1, 4})), {"x"}, attributes);
                       }).what());
  };
  CHECK(pooled({{"ksize", Sizes{large}}}) == "avg_pool2d(x): a window of [4611686018427387904] is too large");
  CHECK(pooled({{"ksize", Sizes{1}}, {"paddings", Sizes{large, 0}}}) ==
        "avg_pool2d(x): attribute 'paddings' is [4611686018427387904, 0]; its numbers are 0 to 1073741824");
}

TEST_CASE("what is found in the values of a run is told with the run") {
  Program program;
  Scope scope;
  add_data(program, "x", DataType::float32, {-1});
  add(program, "log", {"x"}, "out");
  Executor executor(program, scope);
  const auto told = [&](float value) {
    const Tensor x = floats({2}, {1, value});
    executor.run({{"x", &x}});
    return std::string(error_of([&] {
                         executor.expect_finite(program.operators()[0], [] { return std::string("run 7"); });
                       }).what());
  };
  CHECK(told(-1) == "log made NaN in 'out', in run 7");
  CHECK(told(0) == "log made an infinity in 'out', in run 7");
  const Tensor x = floats({1}, {1});
  executor.run({{"x", &x}});
  executor.expect_finite(program.operators()[0], [] { return std::string("run 8"); });
}
