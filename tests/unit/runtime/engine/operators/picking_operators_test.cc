// What operators that pick, sort and repeat values refuse, and what they do at the edges; their values are
// compared with Paddle's by tests/e2e/python/test_paddle_names.py.

#include <algorithm>

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"
#include "tests/support/engine_program.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

using Axes = std::vector<std::int64_t>;
using Attributes = std::map<std::string, Attribute>;

struct Fed {
  std::string name;
  Tensor tensor;
};

/// The text of the error with which a program of one operator ends,
/// while it is built or while it runs; empty without one.
std::string error_of(const std::string& type, std::vector<Fed> inputs, const Attributes& attributes,
                     std::size_t outputs = 1) {
  Program program;
  Scope scope;
  std::map<std::string, const Tensor*> feed;
  Operator op{.type = type, .inputs = {}, .outputs = {}, .attributes = attributes};
  for (const Fed& input : inputs) {
    add_data(program, input.name, input.tensor.type(), Shape(input.tensor.shape().size(), -1));
    op.inputs.push_back(input.name);
    feed[input.name] = &input.tensor;
  }
  for (std::size_t i = 0; i < outputs; ++i) op.outputs.push_back("out" + std::to_string(i));
  op.where = "train.py:7: y = f(x)";
  try {
    program.append(op);
    Executor(program, scope).run(feed);
  } catch (const Error& error) {
    REQUIRE(error.context() == std::vector<std::string>{"train.py:7: y = f(x)"});
    return error.what();
  }
  return {};
}

std::vector<Fed> matrix_and(const std::string& name, Tensor other) {
  std::vector<Fed> fed;
  fed.push_back({"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  fed.push_back({name, std::move(other)});
  return fed;
}

}  // namespace

TEST_CASE("an index that is outside is named, with what it points into and the line of the script") {
  CHECK(error_of("gather", matrix_and("index", ints({1}, {2})), {}) ==
        "gather: index 2 in 'index' is outside of 'x', which has 2 there");
  CHECK(error_of("gather", matrix_and("index", ints({1}, {-3})), {}) ==
        "gather: index -3 in 'index' is outside of 'x', which has 2 there");
  std::vector<Fed> place;
  place.push_back({"place", ints({2}, {0, 4})});
  CHECK(error_of("one_hot", std::move(place), {{"depth", std::int64_t{4}}}) ==
        "one_hot: 4 in 'place' is not below 4");
}

TEST_CASE("what does not fit is refused with both shapes") {
  CHECK(error_of("expand_as", matrix_and("y", floats({3, 2}, {1, 2, 3, 4, 5, 6})), {}) ==
        "expand_as(x, y): [2, 3] cannot be expanded to [3, 2]");
  CHECK(error_of("masked_select", matrix_and("mask", Tensor(DataType::boolean, {3})), {}) ==
        "masked_select(x, mask): the input is [2, 3], the mask [3]");
  CHECK(error_of("einsum", matrix_and("y", floats({2, 2}, {1, 2, 3, 4})),
                 {{"x", std::string("ab")}, {"y", std::string("bc")}, {"out", std::string("ac")}}) ==
        "einsum(x, y): 'b' is both 3 and 2: [2, 3] and [2, 2]");
  std::vector<Fed> row;
  row.push_back({"row", floats({1, 2}, {1, 2})});
  CHECK(error_of("top_k", std::move(row), {{"k", std::int64_t{3}}}, 2) ==
        "top_k(row): k is 3, and there are 2 values");
}

TEST_CASE("sizes come from tensors of one integer, and from nothing else") {
  const Attributes sizes{{"shape", Axes{-1, 2}}, {"shape_from", Axes{1, -1}}};
  CHECK(error_of("reshape", matrix_and("rows", ints({1}, {3})), sizes).empty());
  CHECK(error_of("reshape", matrix_and("rows", ints({1}, {4})), sizes) ==
        "reshape(x, rows): [2, 3] cannot become [4, 2]");
  CHECK(error_of("reshape", matrix_and("rows", ints({2}, {3, 3})), sizes) ==
        "reshape(x, rows): 'rows' is int64 [2], and one integer is needed");
  CHECK(error_of("reshape", matrix_and("rows", floats({1}, {3})), sizes) ==
        "reshape(x, rows): 'rows' is float32 [1], and one integer is needed");
  CHECK(error_of("reshape", matrix_and("rows", ints({1}, {3})),
                 {{"shape", Axes{-1, 2}}, {"shape_from", Axes{4, -1}}})
            .starts_with("reshape(x, rows): attribute 'shape_from' names input 4"));
}

TEST_CASE("random numbers of a main program are new in every run, and the same for the same seed") {
  const auto drawn = [](std::uint64_t seed) {
    Program program;
    Scope scope;
    program.random_seed = seed;
    add(program, "random", {}, "out", {{"shape", Axes{4}}});
    Executor executor(program, scope);
    executor.run({});
    std::vector<float> values = floats_of(executor.tensor("out"));
    executor.run({});
    const std::vector<float> again = floats_of(executor.tensor("out"));
    CHECK(values != again);
    values.insert(values.end(), again.begin(), again.end());
    return values;
  };
  CHECK(drawn(3) == drawn(3));
  CHECK(drawn(3) != drawn(4));
}

TEST_CASE("draws without replacement are different places, each with a probability") {
  Program program;
  Scope scope;
  program.random_seed = 5;
  add_data(program, "p", DataType::float32, {-1, 4});
  add(program, "multinomial", {"p"}, "places", {{"num_samples", std::int64_t{3}}});
  add(program, "permutation", {}, "order", {{"n", std::int64_t{6}}});
  Executor executor(program, scope);
  const Tensor p = floats({1, 4}, {0.1f, 0.0f, 0.2f, 0.7f});
  for (int run = 0; run < 20; ++run) {
    executor.run({{"p", &p}});
    std::vector<std::int64_t> places = ints_of(executor.tensor("places")),
                              order = ints_of(executor.tensor("order"));
    std::sort(places.begin(), places.end());
    std::sort(order.begin(), order.end());
    CHECK(places == std::vector<std::int64_t>{0, 2, 3});
    CHECK(order == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
  }
  const Tensor few = floats({1, 4}, {0.5f, 0.0f, 0.5f, 0.0f});
  CHECK_THROWS_AS(executor.run({{"p", &few}}), Error);
}
