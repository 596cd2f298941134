// Shows and clicks by key, and what continuous_value_model makes of them.

#include <cmath>

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "tests/support/engine_program.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

/// Rows that are `key` in every column.
struct KeyRows final : RowSource {
  void pull_rows(const std::string&, std::span<const std::uint64_t> keys, std::span<float> rows) override {
    const std::size_t width = keys.empty() ? 0 : rows.size() / keys.size();
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(keys[i / width]);
  }
};

/// sparse_embedding of [2 statistics, 2 values] -> sequence_pool -> sum.
Program pooled_lookup(std::map<std::string, Attribute> more) {
  Program program;
  add_data(program, "ids", DataType::int64, {-1}, 1);
  more["parameter"] = std::string("w");
  more["width"] = std::int64_t{4};
  add(program, "sparse_embedding", {"ids"}, "rows", more);
  add(program, "sequence_pool", {"rows"}, "pooled");
  add(program, "sum", {"pooled"}, "loss");
  return program;
}

Tensor two_examples() {
  Tensor ids = ints({5}, {7, 9, 7, 0, 8});
  ids.offsets = {0, 2, 5};
  return ids;
}

}  // namespace

TEST_CASE("statistics have no gradient, and a gradient may be one of the batch") {
  Program program = pooled_lookup({{"statistics", std::int64_t{2}}, {"times_batch", true}});
  const auto gradients = append_backward(program, "loss");
  REQUIRE(gradients.size() == 1);
  Scope scope;
  KeyRows rows;
  Executor executor(program, scope, &rows);
  const Tensor ids = two_examples();
  executor.run({{"ids", &ids}});
  CHECK(executor.tensor("w@GRAD").shape() == Shape{5, 2});
  for (const float g : floats_of(executor.tensor("w@GRAD"))) CHECK(g == 2.0f);
}

TEST_CASE("a lookup for test has no gradient") {
  Program program = pooled_lookup({{"is_test", true}});
  add_data(program, "x", DataType::float32, {1});
  Scope scope;
  add_parameter(program, scope, "v", floats({1}, {1}));
  add(program, "elementwise_mul", {"x", "v"}, "y");
  add(program, "elementwise_add", {"loss", "y"}, "total");
  const auto gradients = append_backward(program, "total");
  REQUIRE(gradients.size() == 1);
  CHECK(gradients[0].parameter == "v");
}

TEST_CASE("row_statistics gives each key the show and click of its example") {
  Program program;
  add_data(program, "show", DataType::int64, {-1, 1});
  add_data(program, "click", DataType::float32, {-1, 1});
  add_data(program, "ids", DataType::int64, {-1}, 1);
  add_data(program, "dense_ids", DataType::int64, {-1, 2});
  program.append({.type = "row_statistics",
                  .inputs = {"show", "click", "ids", "dense_ids"},
                  .outputs = {"shows", "clicks"},
                  .attributes = {{"paddings", std::vector<std::int64_t>{0, 1}}}});
  Scope scope;
  Executor executor(program, scope);
  const Tensor show = ints({2, 1}, {3, 5}), ids = two_examples(), dense = ints({2, 2}, {1, 2, 3, 0});
  const Tensor click = floats({2, 1}, {0.0f, 2.0f}), three = floats({3, 1}, {0, 1, 2});
  executor.run({{"show", &show}, {"click", &click}, {"ids", &ids}, {"dense_ids", &dense}});
  CHECK(floats_of(executor.tensor("shows")) == std::vector<float>{3, 3, 5, 5, 3, 5, 5});
  CHECK(floats_of(executor.tensor("clicks")) == std::vector<float>{0, 0, 2, 2, 0, 2, 2});
  CHECK_THROWS_WITH_AS(
      executor.run({{"show", &show}, {"click", &three}, {"ids", &ids}, {"dense_ids", &dense}}),
      "row_statistics(show, click, ids, dense_ids): 'click' has 3 values for 2 examples", Error);
}

TEST_CASE("cvm takes logarithms of show and click, or leaves them out") {
  for (const bool use : {true, false}) {
    Program program;
    Scope scope;
    add_parameter(program, scope, "x", floats({2, 3}, {0, 0, 5, 3, 1, 7}));
    add_data(program, "cvm", DataType::float32, {-1, 2});
    add(program, "cvm", {"x", "cvm"}, "y", {{"use_cvm", use}});
    add(program, "sum", {"y"}, "loss");
    append_backward(program, "loss");
    Executor executor(program, scope);
    const Tensor cvm = floats({2, 2}, {1, 0, 1, 1});
    executor.run({{"cvm", &cvm}});
    const float show = std::log(4.0f), click = std::log(2.0f) - show;
    const auto y = floats_of(executor.tensor("y"));
    CHECK(y == (use ? std::vector<float>{0, 0, 5, show, click, 7} : std::vector<float>{5, 7}));
    CHECK(floats_of(executor.tensor("x@GRAD")) == std::vector<float>{1, 0, 1, 1, 1, 1});
    const Tensor three = floats({3, 2}, {1, 0, 1, 1, 1, 1});
    CHECK_THROWS_WITH_AS(executor.run({{"cvm", &three}}),
                         doctest::Contains("6 values in 'cvm' for 2 examples"), Error);
  }
}

TEST_CASE("assign_value gives the values that it has") {
  Program startup;
  startup.append({.type = "assign_value",
                  .inputs = {},
                  .outputs = {"w"},
                  .attributes = {{"shape", Shape{2, 1}}, {"values", std::vector<double>{0.5, -2.0}}}});
  Scope scope;
  Executor executor(startup, scope);
  executor.run({});
  CHECK(floats_of(executor.tensor("w")) == std::vector<float>{0.5f, -2.0f});
  CHECK_THROWS_WITH_AS(
      startup.append({.type = "assign_value",
                      .inputs = {},
                      .outputs = {"v"},
                      .attributes = {{"shape", Shape{3}}, {"values", std::vector<double>{0.5}}}}),
      doctest::Contains("1 values for the shape [3]"), Error);
}
