#include "runtime/engine/executor.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"
#include "tests/support/engine_program.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

Program doubling() {
  Program program;
  add_data(program, "x", DataType::float32, {-1, 2});
  add(program, "scale", {"x"}, "y", {{"scale", 2.0}});
  return program;
}

std::string refusal(const Program& program, const std::map<std::string, const Tensor*>& feed) {
  Scope scope;
  Executor executor(program, scope);
  try {
    executor.run(feed);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::vector<float> first_values(std::uint64_t seed, const std::string& name, const std::string& type,
                                std::map<std::string, Attribute> attributes = {}) {
  Program program;
  program.random_seed = seed;
  attributes["shape"] = Shape{2000};
  program.append({type, {}, {name}, attributes});
  Scope scope;
  Executor executor(program, scope);
  executor.run({});
  return floats_of(executor.tensor(name));
}

double mean_of(const std::vector<float>& values) {
  double total = 0;
  for (const float value : values) total += static_cast<double>(value);
  return total / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("batches of changing size run through one executor") {
  const Program program = doubling();
  Scope scope;
  Executor executor(program, scope);
  const Tensor large = floats({3, 2}, {1, 2, 3, 4, 5, 6}), small = floats({1, 2}, {7, 8});
  executor.run({{"x", &large}});
  const void* memory = executor.tensor("y").data();
  executor.run({{"x", &small}});
  CHECK(floats_of(executor.tensor("y")) == std::vector<float>{14, 16});
  CHECK(executor.tensor("y").data() == memory);
}

TEST_CASE("a feed that is missing, or not as declared, is named") {
  const Program program = doubling();
  const Tensor wide = floats({1, 3}, {1, 2, 3}), whole = ints({1, 2}, {1, 2});
  CHECK(refusal(program, {}) == "'x' is not fed");
  CHECK(refusal(program, {{"x", &wide}}) == "'x' is declared float32 [-1, 2], but was fed float32 [1, 3]");
  CHECK(refusal(program, {{"x", &whole}}) == "'x' is declared float32 [-1, 2], but was fed int64 [1, 2]");
}

TEST_CASE("a data variable that the program writes before it reads it need not be fed") {
  Program program = doubling();
  add_data(program, "t", DataType::float32, {-1, 2});
  add(program, "assign", {"y"}, "t");
  add(program, "scale", {"t"}, "z", {{"scale", 10.0}});
  Scope scope;
  Executor executor(program, scope);
  const Tensor fed = floats({1, 2}, {1, 2});
  executor.run({{"x", &fed}});
  CHECK(floats_of(executor.tensor("z")) == std::vector<float>{20, 40});
  CHECK(refusal(program, {}) == "'x' is not fed");
}

TEST_CASE("a parameter without a value says what to run first") {
  Program program;
  Scope filled;
  add_parameter(program, filled, "w", floats({1}, {1}));
  add(program, "square", {"w"}, "y");
  CHECK(refusal(program, {}) == "'w' has no value");
}

TEST_CASE("the sequences of a kept value are all of its rows") {
  Program program;
  Scope scope;
  add_parameter(program, scope, "w", floats({2, 1}, {1, 2}));
  add(program, "square", {"w"}, "y");
  Executor executor(program, scope);
  for (const std::vector<std::size_t>& offsets :
       std::vector<std::vector<std::size_t>>{{0, 3}, {1, 2}, {0, 5, 2}, {0}}) {
    scope.tensor("w").offsets = offsets;
    CHECK_THROWS_WITH_AS(executor.run({}), "the sequences of 'w' are not those of its rows", Error);
  }
  scope.tensor("w").offsets = {0, 1, 2};
  executor.run({});
}

TEST_CASE("executors share the scope, except for what is their own") {
  Program program;
  Scope scope;
  add_parameter(program, scope, "shared", floats({1}, {1}));
  add_parameter(program, scope, "own", floats({1}, {1}));
  add(program, "elementwise_add", {"shared", "own"}, "y");
  Executor executor(program, scope, nullptr, {"own"});
  Tensor& own = executor.tensor("own");
  CHECK(&own != &scope.tensor("own"));
  CHECK(&executor.tensor("shared") == &scope.tensor("shared"));
  own.resize(DataType::float32, {1});
  own.values<float>()[0] = 5;
  executor.run({});
  CHECK(floats_of(executor.tensor("y"))[0] == 6.0f);
  CHECK_THROWS_WITH_AS(executor.tensor("z"), "the program has no variable 'z'", Error);
}

TEST_CASE("random first values depend on seed and name alone") {
  const std::map<std::string, Attribute> range = {{"min", -2.0}, {"max", 4.0}};
  const auto w = first_values(1, "w", "uniform_random", range);
  CHECK(w == first_values(1, "w", "uniform_random", range));
  CHECK(w != first_values(2, "w", "uniform_random", range));
  CHECK(w != first_values(1, "v", "uniform_random", range));
  CHECK(first_values(0, "w", "uniform_random", range) != first_values(0, "w", "uniform_random", range));
  auto seeded = range;
  seeded["seed"] = std::int64_t{8};
  CHECK(first_values(0, "w", "uniform_random", seeded) == first_values(5, "w", "uniform_random", seeded));
}

TEST_CASE("random first values have the distribution asked for") {
  const auto flat = first_values(1, "w", "uniform_random", {{"min", -2.0}, {"max", 4.0}});
  CHECK(mean_of(flat) == doctest::Approx(1.0).epsilon(0.1));
  CHECK(*std::min_element(flat.begin(), flat.end()) >= -2.0f);
  CHECK(*std::max_element(flat.begin(), flat.end()) <= 4.0f);
  auto bell = first_values(1, "w", "gaussian_random", {{"mean", 1.0}, {"std", 2.0}});
  CHECK(mean_of(bell) == doctest::Approx(1.0).epsilon(0.15));
  CHECK(*std::max_element(bell.begin(), bell.end()) > 5.5f);
  for (float& value : bell) value = (value - 1.0f) * (value - 1.0f);
  CHECK(mean_of(bell) == doctest::Approx(4.0).epsilon(0.1));
  const auto cut = first_values(1, "w", "truncated_gaussian_random", {{"mean", 1.0}, {"std", 2.0}});
  CHECK(*std::min_element(cut.begin(), cut.end()) >= -3.0f);
  CHECK(*std::max_element(cut.begin(), cut.end()) <= 5.0f);
  CHECK(*std::max_element(cut.begin(), cut.end()) > 4.5f);
  CHECK(first_values(1, "w", "fill_constant", {{"value", 0.5}})[7] == 0.5f);
}
