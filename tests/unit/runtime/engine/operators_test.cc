// What operators compute, row by row against numbers worked out by hand, and what they refuse.

#include "runtime/engine/operators.h"

#include <cmath>
#include <cstring>
#include <memory>

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "runtime/engine/operators/all_operators.h"
#include "tests/support/engine_program.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

using Axes = std::vector<std::int64_t>;
using Attributes = std::map<std::string, Attribute>;

struct Value {
  Shape shape;
  std::vector<float> values;
};

struct Row {
  std::string type;
  std::vector<Value> inputs;
  Attributes attributes;
  Value expected;
};

const Value kSix{{2, 3}, {1, 2, 3, 4, 5, 6}};

std::vector<Row> arithmetic_rows() {
  return {
      {"elementwise_add", {kSix, {{3}, {10, 20, 30}}}, {}, {{2, 3}, {11, 22, 33, 14, 25, 36}}},
      {"elementwise_sub", {kSix, {{2, 1}, {1, 4}}}, {}, {{2, 3}, {0, 1, 2, 0, 1, 2}}},
      {"elementwise_mul", {{{2, 1}, {2, 3}}, {{3}, {1, 2, 3}}}, {}, {{2, 3}, {2, 4, 6, 3, 6, 9}}},
      {"elementwise_div", {kSix, {{1}, {2}}}, {}, {{2, 3}, {0.5, 1, 1.5, 2, 2.5, 3}}},
      {"elementwise_max", {kSix, {{1}, {3}}}, {}, {{2, 3}, {3, 3, 3, 4, 5, 6}}},
      {"elementwise_min", {kSix, {{1}, {3}}}, {}, {{2, 3}, {1, 2, 3, 3, 3, 3}}},
      {"elementwise_pow", {{{2}, {2, 3}}, {{2}, {3, 2}}}, {}, {{2}, {8, 9}}},
      {"elementwise_add",
       {kSix, {{2}, {100, 200}}},
       {{"axis", std::int64_t{0}}},
       {{2, 3}, {101, 102, 103, 204, 205, 206}}},
      {"relu", {{{4}, {-1, 0, 2, -3}}}, {}, {{4}, {0, 0, 2, 0}}},
      {"leaky_relu", {{{2}, {-1, 2}}}, {{"alpha", 0.1}}, {{2}, {-0.1f, 2}}},
      {"sigmoid", {{{3}, {0, 2, -2}}}, {}, {{3}, {0.5, 0.880797f, 0.119203f}}},
      {"tanh", {{{2}, {0.5, -2}}}, {}, {{2}, {0.462117f, -0.964028f}}},
      {"log", {{{2}, {1, 10}}}, {}, {{2}, {0, 2.302585f}}},
      {"exp", {{{2}, {0, -1}}}, {}, {{2}, {1, 0.367879f}}},
      {"square", {{{2}, {3, -2}}}, {}, {{2}, {9, 4}}},
      {"sqrt", {{{2}, {9, 2}}}, {}, {{2}, {3, 1.414214f}}},
      {"rsqrt", {{{1}, {4}}}, {}, {{1}, {0.5}}},
      {"reciprocal", {{{1}, {4}}}, {}, {{1}, {0.25}}},
      {"abs", {{{2}, {-3, 2}}}, {}, {{2}, {3, 2}}},
      {"log1p", {{{1}, {1}}}, {}, {{1}, {0.693147f}}},
      {"softsign", {{{2}, {1, -3}}}, {}, {{2}, {0.5, -0.75}}},
      {"pow", {{{2}, {2, 3}}}, {{"factor", std::int64_t{2}}}, {{2}, {4, 9}}},
      {"scale", {{{2}, {1, 2}}}, {{"scale", 2.0}, {"bias", 3.0}}, {{2}, {5, 7}}},
      {"scale",
       {{{2}, {1, 2}}},
       {{"scale", 2.0}, {"bias", 3.0}, {"bias_after_scale", false}},
       {{2}, {8, 10}}},
      {"clip", {{{3}, {-5, 0.5, 5}}}, {{"min", -1.0}, {"max", 1.0}}, {{3}, {-1, 0.5, 1}}},
      {"fill_any_like", {kSix}, {{"value", 7.0}}, {{2, 3}, {7, 7, 7, 7, 7, 7}}},
  };
}

std::vector<Row> layout_rows() {
  return {
      {"concat", {kSix, {{2, 1}, {7, 8}}}, {{"axis", std::int64_t{-1}}}, {{2, 4}, {1, 2, 3, 7, 4, 5, 6, 8}}},
      {"concat", {kSix, {{1, 3}, {7, 8, 9}}}, {}, {{3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}},
      {"stack", {{{2}, {1, 2}}, {{2}, {3, 4}}}, {{"axis", std::int64_t{1}}}, {{2, 2}, {1, 3, 2, 4}}},
      {"reshape", {kSix}, {{"shape", Axes{3, -1}}}, {{3, 2}, {1, 2, 3, 4, 5, 6}}},
      {"reshape", {kSix}, {{"shape", Axes{0, 1, 3}}}, {{2, 1, 3}, {1, 2, 3, 4, 5, 6}}},
      {"flatten", {kSix}, {}, {{6}, {1, 2, 3, 4, 5, 6}}},
      {"squeeze", {{{2, 1, 3}, {1, 2, 3, 4, 5, 6}}}, {}, kSix},
      {"unsqueeze", {kSix}, {{"axes", Axes{-1}}}, {{2, 3, 1}, {1, 2, 3, 4, 5, 6}}},
      {"transpose", {kSix}, {{"perm", Axes{1, 0}}}, {{3, 2}, {1, 4, 2, 5, 3, 6}}},
      {"slice", {kSix}, {{"axes", Axes{1}}, {"starts", Axes{-2}}, {"ends", Axes{9}}}, {{2, 2}, {2, 3, 5, 6}}},
      {"assign", {kSix}, {}, kSix},
      {"mean", {kSix}, {}, {{}, {3.5}}},
      {"mean", {kSix}, {{"axis", Axes{0}}}, {{3}, {2.5, 3.5, 4.5}}},
      {"sum", {kSix}, {{"axis", Axes{1}}, {"keepdim", true}}, {{2, 1}, {6, 15}}},
      {"max", {kSix}, {{"axis", Axes{1}}}, {{2}, {3, 6}}},
      {"add_n", {kSix, kSix, kSix}, {}, {{2, 3}, {3, 6, 9, 12, 15, 18}}},
  };
}

std::vector<Row> matrix_and_loss_rows() {
  const Value three_two{{3, 2}, {1, 0, 0, 1, 1, 1}};
  return {
      {"matmul", {kSix, three_two}, {}, {{2, 2}, {4, 5, 10, 11}}},
      {"matmul", {three_two, kSix}, {{"transpose_x", true}, {"transpose_y", true}}, {{2, 2}, {4, 10, 5, 11}}},
      {"matmul", {{{1, 2, 3}, kSix.values}, three_two}, {}, {{1, 2, 2}, {4, 5, 10, 11}}},
      {"linear", {kSix, three_two, {{2}, {100, 200}}}, {}, {{2, 2}, {104, 205, 110, 211}}},
      {"linear", {kSix, three_two}, {}, {{2, 2}, {4, 5, 10, 11}}},
      {"softmax", {{{2, 2}, {0, 0, 1, 3}}}, {}, {{2, 2}, {0.5, 0.5, 0.119203f, 0.880797f}}},
      {"log_loss", {{{2, 1}, {0.8f, 0.3f}}, {{2, 1}, {1, 0}}}, {}, {{2, 1}, {0.223019f, 0.356532f}}},
      {"sigmoid_cross_entropy_with_logits",
       {{{3, 1}, {0, 2, -100}}, {{3, 1}, {1, 0, 0}}},
       {},
       {{3, 1}, {0.693147f, 2.126928f, 0}}},
      {"square_error_cost", {{{2}, {1, 5}}, {{2}, {3, 4}}}, {}, {{2}, {4, 1}}},
      {"cross_entropy",
       {{{1, 2}, {0.25f, 0.75f}}, {{1, 2}, {0.5f, 0.5f}}},
       {{"soft_label", true}, {"use_softmax", false}},
       {{1, 1}, {0.836988f}}},
  };
}

/// A fed tensor that lists can hold: Tensor itself is not copied by accident.
struct Fed {
  std::shared_ptr<Tensor> tensor;

  Fed(Tensor&& from) : tensor(std::make_shared<Tensor>(std::move(from))) {}
  Fed(const Tensor& from) : tensor(std::make_shared<Tensor>(from.type(), from.shape())) {
    std::memcpy(tensor->data(), from.data(), from.bytes());
    tensor->offsets = from.offsets;
  }
};

/// Builds a program of one operator over fed inputs and runs it.
std::vector<Tensor> run(const std::string& type, const std::vector<Fed>& inputs, const Attributes& attributes,
                        std::size_t outputs = 1) {
  Program program;
  Operator op{.type = type, .inputs = {}, .outputs = {}, .attributes = attributes};
  std::map<std::string, const Tensor*> feed;
  for (const Fed& fed : inputs) {
    const Tensor& input = *fed.tensor;
    const std::string name = std::string("x").append(std::to_string(op.inputs.size()));
    Shape shape = input.shape();
    if (!shape.empty()) shape[0] = -1;
    add_data(program, name, input.type(), shape, input.offsets.empty() ? 0 : 1);
    op.inputs.push_back(name);
    feed[name] = &input;
  }
  for (std::size_t i = 0; i < outputs; ++i) op.outputs.push_back(std::string("y").append(std::to_string(i)));
  const auto names = op.outputs;
  program.append(std::move(op));
  Scope scope;
  Executor executor(program, scope);
  executor.run(feed);
  std::vector<Tensor> results;
  for (const std::string& name : names) results.push_back(std::move(executor.tensor(name)));
  return results;
}

std::vector<Fed> inputs_of(const Row& row) {
  std::vector<Fed> inputs;
  for (const Value& value : row.inputs) inputs.emplace_back(floats(value.shape, value.values));
  return inputs;
}

std::string refusal(const std::string& type, const std::vector<Fed>& inputs,
                    const Attributes& attributes = {}) {
  try {
    run(type, inputs, attributes);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("operators compute what their tables say") {
  for (const auto& group : {arithmetic_rows(), layout_rows(), matrix_and_loss_rows()}) {
    for (const Row& row : group) {
      INFO(row.type);
      if (row.type == "cross_entropy" || row.type == "matmul" || row.type == "linear" ||
          row.type == "reshape" || row.type == "stack" || row.type == "concat" || row.inputs.size() > 1) {
        // Weights and labels keep their first dimension: a program that knows it.
        Program program;
        Scope scope;
        Operator op{.type = row.type, .inputs = {}, .outputs = {"y"}, .attributes = row.attributes};
        for (const Value& value : row.inputs) {
          op.inputs.push_back(std::string("x").append(std::to_string(op.inputs.size())));
          add_parameter(program, scope, op.inputs.back(), floats(value.shape, value.values));
        }
        program.append(std::move(op));
        CHECK(program.variable("y").shape == row.expected.shape);
        Executor executor(program, scope);
        executor.run({});
        CHECK(executor.tensor("y").shape() == row.expected.shape);
        const auto got = floats_of(executor.tensor("y"));
        REQUIRE(got.size() == row.expected.values.size());
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(row.expected.values[i]));
        continue;
      }
      const auto results = run(row.type, inputs_of(row), row.attributes);
      CHECK(results[0].shape() == row.expected.shape);
      const auto got = floats_of(results[0]);
      REQUIRE(got.size() == row.expected.values.size());
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(row.expected.values[i]));
    }
  }
}

TEST_CASE("split cuts equal parts or the sections named") {
  const auto equal = run("split", {floats({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})}, {{"axis", std::int64_t{1}}}, 2);
  CHECK(floats_of(equal[0]) == std::vector<float>{1, 2, 5, 6});
  CHECK(floats_of(equal[1]) == std::vector<float>{3, 4, 7, 8});
  const auto named = run("split", {floats({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})},
                         {{"axis", std::int64_t{1}}, {"sections", Axes{-1, 3}}}, 2);
  CHECK(floats_of(named[0]) == std::vector<float>{1, 5});
  CHECK(named[1].shape() == Shape{2, 3});
}

TEST_CASE("comparisons and casts change the type") {
  const Tensor x = floats({3}, {1, 2, 3}), y = floats({3}, {2, 2, 2});
  const auto less = run("less_than", {x, y}, {});
  CHECK(less[0].type() == DataType::boolean);
  CHECK((less[0].values<bool>()[0] && !less[0].values<bool>()[1] && !less[0].values<bool>()[2]));
  CHECK(run("equal", {x, y}, {})[0].values<bool>()[1]);
  const auto whole = run("cast", {floats({2}, {1.7f, -1.7f})}, {{"dtype", std::string("int64")}});
  CHECK(ints_of(whole[0]) == std::vector<std::int64_t>{1, -1});
  CHECK(floats_of(run("cast", {ints({2}, {3, 4})}, {{"dtype", std::string("float32")}})[0]) ==
        std::vector<float>{3, 4});
  CHECK(ints_of(run("elementwise_add", {ints({2}, {3, 4}), ints({2}, {1, 1})}, {})[0]) ==
        std::vector<std::int64_t>{4, 5});
}

TEST_CASE("sequence_pool folds the values of each example, and an empty one gives zeros") {
  Tensor x = floats({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  x.offsets = {0, 3, 3, 4};
  const auto pooled = [&x](const char* type) {
    return floats_of(run("sequence_pool", {x}, {{"pool_type", std::string(type)}})[0]);
  };
  CHECK(pooled("sum") == std::vector<float>{9, 12, 0, 0, 7, 8});
  CHECK(pooled("average")[1] == doctest::Approx(4));
  CHECK(pooled("sqrt")[0] == doctest::Approx(9 / std::sqrt(3.0)));
  CHECK(pooled("max") == std::vector<float>{5, 6, 0, 0, 7, 8});
}

TEST_CASE("lod_reset gives rows sequences, which are as many values as there are rows") {
  const Tensor x = floats({4, 1}, {1, 2, 3, 4});
  const Tensor out = std::move(run("lod_reset", {x, ints({3}, {3, 0, 1})}, {})[0]);
  CHECK(floats_of(out) == std::vector<float>{1, 2, 3, 4});
  CHECK(out.offsets == std::vector<std::size_t>{0, 3, 3, 4});
  CHECK(refusal("lod_reset", {x, ints({2}, {3, 2})}) ==
        "lod_reset(x0, x1): the input is [4, 1], its sequences have 5 values");
  CHECK(refusal("lod_reset", {x, ints({2}, {5, -1})}) == "lod_reset(x0, x1): a sequence of -1 values");
}

TEST_CASE("cross_entropy with labels as ids") {
  Program program;
  Scope scope;
  add_parameter(program, scope, "x", floats({3, 2}, {0, 0, 1, 3, 5, 5}));
  add_data(program, "label", DataType::int64, {-1, 1});
  add(program, "cross_entropy", {"x", "label"}, "loss", {{"ignore_index", std::int64_t{9}}});
  Executor executor(program, scope);
  Tensor label = ints({3, 1}, {1, 0, 9});
  executor.run({{"label", &label}});
  const auto loss = floats_of(executor.tensor("loss"));
  CHECK(loss[0] == doctest::Approx(0.693147));
  CHECK(loss[1] == doctest::Approx(2.126928));
  CHECK(loss[2] == 0.0f);
  label.values<std::int64_t>()[0] = 2;
  CHECK_THROWS_WITH_AS(executor.run({{"label", &label}}), "label 2 in 'label' is outside of [0, 2)", Error);
}

TEST_CASE("dropout keeps the mean in training and everything in a test") {
  Program program;
  program.random_seed = 3;
  Scope scope;
  add_parameter(program, scope, "x", floats({1000}, std::vector<float>(1000, 1.0f)));
  program.append({"dropout", {"x"}, {"y", "mask"}, {{"dropout_prob", 0.25}}});
  Executor executor(program, scope);
  executor.run({});
  double total = 0;
  for (const float y : floats_of(executor.tensor("y"))) {
    CHECK((y == 0.0f || y == doctest::Approx(4.0 / 3.0)));
    total += static_cast<double>(y);
  }
  CHECK(total == doctest::Approx(1000.0).epsilon(0.1));
  Executor test(clone_for_test(program), scope);
  test.run({});
  CHECK(floats_of(test.tensor("y"))[17] == 1.0f);
}

TEST_CASE("shapes and types that disagree are named with the operator and its inputs") {
  CHECK(refusal("elementwise_add",
                {floats({2, 3}, std::vector<float>(6)), floats({2, 4}, std::vector<float>(8))}) ==
        "elementwise_add: shapes do not agree: x0 float32 [-1, 3], x1 float32 [-1, 4]");
  CHECK(refusal("elementwise_add", {floats({2}, {1, 2}), ints({2}, {1, 2})}) ==
        "elementwise_add: the types of its inputs differ: x0 float32 [-1], x1 int64 [-1]");
  CHECK(refusal("relu", {ints({2}, {1, 2})}) == "relu: input 'x0' is int64, not float32: x0 int64 [-1]");
  CHECK(refusal("relu", {}) == "relu: takes 1 inputs, has 0");
  // Only known when it runs: the batch sizes differ.
  CHECK(refusal("elementwise_add",
                {floats({2, 3}, std::vector<float>(6)), floats({4, 3}, std::vector<float>(12))}) ==
        "elementwise_add(x0, x1): shapes do not agree: [2, 3] and [4, 3]");
  CHECK(refusal("concat", {floats({2, 3}, std::vector<float>(6)), floats({4, 3}, std::vector<float>(12))},
                {{"axis", std::int64_t{1}}}) == "concat(x0, x1): its inputs are [2, 3] and [4, 3]");
  CHECK(refusal("reshape", {floats({2, 3}, std::vector<float>(6))}, {{"shape", Axes{4, 2}}}) ==
        "reshape(x0): [2, 3] cannot become [4, 2]");
  CHECK(refusal("mean", {floats({2}, {1, 2})}, {{"axis", Axes{3}}}) ==
        "mean(x0): there is no axis 3 in 1 dimensions");
  CHECK(refusal("scale", {floats({1}, {1})}, {{"scale", std::string("two")}}) ==
        "scale(x0): attribute 'scale' has the wrong type");
  CHECK(refusal("sequence_pool", {floats({2}, {1, 2})}) ==
        "sequence_pool: the input has no sequences: x0 float32 [-1]");
}

TEST_CASE("an id outside of the embedding is named") {
  Program program;
  Scope scope;
  add_parameter(program, scope, "w", floats({3, 2}, {1, 2, 3, 4, 5, 6}));
  add_data(program, "ids", DataType::int64, {-1, 1});
  add(program, "embedding", {"w", "ids"}, "rows");
  CHECK(program.variable("rows").shape == Shape{-1, 1, 2});
  Executor executor(program, scope);
  const Tensor ids = ints({2, 1}, {2, 0}), wrong = ints({1, 1}, {-1});
  executor.run({{"ids", &ids}});
  CHECK(floats_of(executor.tensor("rows")) == std::vector<float>{5, 6, 1, 2});
  CHECK_THROWS_WITH_AS(executor.run({{"ids", &wrong}}), "id -1 in 'ids' is outside of 'w', which has 3 rows",
                       Error);
}

TEST_CASE("sparse_embedding without servers says so") {
  Program program;
  add_data(program, "ids", DataType::int64, {-1, 1});
  add(program, "sparse_embedding", {"ids"}, "rows",
      {{"parameter", std::string("w")}, {"width", std::int64_t{2}}});
  CHECK(program.variable("w").trainable);
  Scope scope;
  CHECK_THROWS_WITH_AS(Executor(program, scope),
                       "sparse_embedding(ids): there is no parameter server to look rows up", Error);
}

TEST_CASE("the manual describes every operator that is not append_backward's alone") {
  std::size_t described = 0;
  for (const OperatorGroup& group : operator_groups()) {
    CHECK_FALSE(group.title.empty());
    for (const OperatorDefinition& row : group.operators) {
      CAPTURE(row.type);
      CHECK(find_operator(row.type) == &row);
      CHECK((row.infer == infer_gradient || !row.text.form.empty()));
      CHECK(row.text.form.empty() == row.text.meaning.empty());
      described += row.text.form.empty() ? 0 : 1;
    }
  }
  CHECK(described > 140);
}

TEST_CASE("a value that no operator before makes is named") {
  Program program;
  add_data(program, "x", DataType::float32, {-1, 2});
  Variable later;
  later.name = "z";
  later.shape = {1};
  program.add_variable(later);
  add(program, "square", {"x"}, "y");
  check_values_are_made(program);
  add(program, "square", {"z"}, "w");
  CHECK_THROWS_WITH_AS(check_values_are_made(program),
                       "'z', which square reads, has no value: no operator before makes it", Error);
}
