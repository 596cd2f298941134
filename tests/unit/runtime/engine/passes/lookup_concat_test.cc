// When lookups must stay as they are; that the fused ones compute the same: passes_test.cc.

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "runtime/engine/passes/passes.h"
#include "tests/support/engine_program.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

/// Two lookups beside one dense input; the loss is the mean of a product.
struct Two {
  Program program;
  Scope scope;

  explicit Two(bool sparse = true, std::int64_t padding = -1) {
    add_data(program, "a", DataType::int64, {-1, 1});
    add_data(program, "b", DataType::int64, {-1, 1});
    add_data(program, "d", DataType::float32, {-1, 1});
    add_parameter(program, scope, "t", floats({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
    add_parameter(program, scope, "v", floats({1, 1}, {3}));
    for (const char* name : {"a", "b"}) {
      const std::string rows = std::string(name) + ".rows";
      add(program, "embedding", {"t", name}, rows, {{"is_sparse", sparse}, {"padding_idx", padding}});
      add(program, "reshape", {rows}, std::string(name) + ".flat",
          {{"shape", std::vector<std::int64_t>{-1, 2}}});
    }
    add(program, "matmul", {"d", "v"}, "scaled");
    add(program, "concat", {"scaled", "b.flat", "a.flat"}, "x", {{"axis", std::int64_t{1}}});
  }
  void train() {
    add(program, "mean", {add(program, "square", {"x"}, "squares")}, "loss");
    gradients = append_backward(program, "loss");
  }
  bool fuses(const Kept& kept) const {
    const Program fused = fuse_lookup_concat(program, kept);
    for (const Operator& op : fused.operators()) {
      if (op.type == "lookup_concat") return true;
    }
    return false;
  }
  std::vector<ParameterGradient> gradients;
};

std::vector<std::vector<float>> run(const Two& two, const Program& program,
                                    const std::vector<std::string>& names) {
  Scope scope;
  for (const char* name : {"t", "v"}) {
    Tensor& tensor = scope.tensor(name);
    const Tensor& from = *two.scope.find(name);
    tensor.resize(from.type(), from.shape());
    std::copy(from.values<float>().begin(), from.values<float>().end(), tensor.values<float>().begin());
  }
  const Tensor a = ints({3, 1}, {0, 2, 2}), b = ints({3, 1}, {3, 1, 2}), d = floats({3, 1}, {0.5f, 1, 2});
  Executor executor(program, scope);
  executor.run({{"a", &a}, {"b", &b}, {"d", &d}});
  std::vector<std::vector<float>> values;
  for (const std::string& name : names) {
    const Tensor& tensor = executor.tensor(name);
    if (tensor.type() == DataType::float32) {
      values.push_back(floats_of(tensor));
    } else {
      const auto keys = ints_of(tensor);
      values.emplace_back(keys.begin(), keys.end());
    }
  }
  return values;
}

}  // namespace

TEST_CASE("columns stand where the concat had them, and gradients come from there") {
  for (const std::int64_t padding : {std::int64_t{-1}, std::int64_t{2}}) {
    Two two(true, padding);
    two.train();
    const std::vector<std::string> names{"x", "t@GRAD", "t@GRAD@KEYS", "v@GRAD"};
    const Program fused = fuse_lookup_concat(two.program, {names.begin(), names.end()});
    CHECK(two.fuses({names.begin(), names.end()}));
    CHECK(run(two, fused, names) == run(two, two.program, names));
    CHECK(run(two, fused, {"x"})[0].size() == 15);
    // Rows of padding_idx move, as in Paddle.
    CHECK(run(two, fused, {"t@GRAD@KEYS"})[0] == std::vector<float>{3, 1, 2, 0, 2, 2});
  }
}

TEST_CASE("an inference program is fused too") {
  const Two two;
  CHECK(two.fuses({"x"}));
  CHECK(run(two, fuse_lookup_concat(two.program, {"x"}), {"x"}) == run(two, two.program, {"x"}));
}

TEST_CASE("rows that are read elsewhere stay") {
  Two two;
  add(two.program, "sum", {"a.rows"}, "all");
  const Kept kept{"x", "all"};
  std::size_t lookups = 0;
  const Program fused = fuse_lookup_concat(two.program, kept);
  for (const Operator& op : fused.operators()) lookups += op.type == "embedding" ? 1 : 0;
  CHECK(lookups == 1);
}

TEST_CASE("a dense gradient, or one with rows of other lookups, leaves all as it is") {
  Two dense(false);
  dense.train();
  CHECK(!dense.fuses({"loss"}));
  Two shared;
  add_data(shared.program, "c", DataType::int64, {-1, 1});
  add(shared.program, "embedding", {"t", "c"}, "c.rows", {{"is_sparse", true}});
  add(shared.program, "sum", {"c.rows"}, "c.sum");
  add(shared.program, "mean", {add(shared.program, "square", {"x"}, "squares")}, "x.mean");
  add(shared.program, "elementwise_add", {"x.mean", "c.sum"}, "loss");
  append_backward(shared.program, "loss");
  CHECK(!shared.fuses({"loss"}));
}

TEST_CASE("an id that the table has not is named with its variable") {
  Two two;
  const Tensor a = ints({1, 1}, {0}), b = ints({1, 1}, {4}), d = floats({1, 1}, {1});
  Executor executor(fuse_lookup_concat(two.program, {"x"}), two.scope);
  try {
    executor.run({{"a", &a}, {"b", &b}, {"d", &d}});
    FAIL("row 4 is not there");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("id 4 in 'b' is outside of 't', which has 4 rows") !=
          std::string::npos);
    CHECK(error.hint() == "make the embedding larger, or map ids into [0, 4)");
  }
}

TEST_CASE("slots with different numbers of examples are refused") {
  const Two two;
  Scope scope;
  scope.tensor("t") = floats({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  scope.tensor("v") = floats({1, 1}, {3});
  const Tensor a = ints({2, 1}, {0, 1}), b = ints({1, 1}, {2}), d = floats({2, 1}, {1, 1});
  Executor executor(fuse_lookup_concat(two.program, {"x"}), scope);
  CHECK_THROWS_WITH_AS(executor.run({{"a", &a}, {"b", &b}, {"d", &d}}),
                       doctest::Contains("'a' has 2 examples, 'b' has 1"), Error);
}
