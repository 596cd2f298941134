#include <set>

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "runtime/engine/passes/passes.h"
#include "tests/support/engine_program.h"
#include "tests/support/errors.h"

using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

Program chain() {
  Program program;
  add_data(program, "x", DataType::float32, {-1, 2});
  add(program, "exp", {"x"}, "a");
  add(program, "tanh", {"a"}, "b");
  add(program, "relu", {"b"}, "c");
  add(program, "exp", {"c"}, "d");
  add(program, "mean", {"d"}, "y");
  return program;
}

std::set<std::string> temporaries_of(const Program& program) {
  std::set<std::string> names;
  for (const Operator& op : program.operators()) names.insert(op.outputs.begin(), op.outputs.end());
  return names;
}

float result_of(const Program& program) {
  Scope scope;
  Executor executor(program, scope);
  const Tensor x = floats({2, 2}, {0.5f, -1, 2, 0.25f});
  executor.run({{"x", &x}});
  return floats_of(executor.tensor("y"))[0];
}

}  // namespace

TEST_CASE("a chain needs two tensors beside its result") {
  const Program program = chain();
  const Program shared = share_memory(program, {"y"});
  CHECK(temporaries_of(program).size() == 5);
  CHECK(temporaries_of(shared) == std::set<std::string>{"a", "b", "y"});
  CHECK(result_of(shared) == result_of(program));
}

TEST_CASE("what is read later, or kept, is not written over") {
  Program program = chain();
  add(program, "elementwise_add", {"a", "d"}, "sum");
  const Program shared = share_memory(program, {"y", "b", "sum"});
  for (const Operator& op : shared.operators()) {
    if (op.type == "elementwise_add") CHECK(op.inputs == std::vector<std::string>{"a", "d"});
  }
  const auto names = temporaries_of(shared);
  CHECK(names.contains("b"));
  CHECK(names.size() == 6);
}

TEST_CASE("random numbers are those of the name before") {
  Program program = chain();
  program.random_seed = 3;
  program.append({"dropout", {"d"}, {"e", "mask"}, {}});
  program.append({"dropout", {"d"}, {"f", "other"}, {}});
  add(program, "elementwise_add", {"e", "f"}, "sum");
  const Program shared = share_memory(program, {"sum"});
  CHECK(temporaries_of(shared).size() < temporaries_of(program).size());
  std::vector<std::vector<float>> sums;
  for (const Program* each : std::initializer_list<const Program*>{&program, &shared}) {
    Scope scope;
    Executor executor(*each, scope);
    const Tensor x = floats({8, 2}, std::vector<float>(16, 0.5f));
    executor.run({{"x", &x}});
    sums.push_back(floats_of(executor.tensor("sum")));
  }
  CHECK(sums[0] == sums[1]);
}

TEST_CASE("errors name the variables of the program before") {
  Program program = chain();
  add_data(program, "other", DataType::float32, {-1, 2});
  add(program, "elementwise_add", {"d", "other"}, "sum");
  const Program shared = share_memory(program, {"y", "sum"});
  CHECK(shared.operators().back().inputs.front() != "d");
  const auto message_of = [](const Program& run) {
    Scope scope;
    Executor executor(run, scope);
    const Tensor x = floats({2, 2}, {0.5f, -1, 2, 0.25f}), other = floats({3, 2}, {1, 2, 3, 4, 5, 6});
    return std::string(error_of([&] { executor.run({{"x", &x}, {"other", &other}}); }).what());
  };
  CHECK(message_of(program).starts_with("elementwise_add(d, other): "));
  CHECK(message_of(shared) == message_of(program));
}
