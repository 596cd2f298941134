#include <doctest/doctest.h>

#include "runtime/engine/passes/passes.h"
#include "tests/support/engine_program.h"

using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

std::vector<std::string> outputs_of(const Program& program) {
  std::vector<std::string> outputs;
  for (const Operator& op : program.operators()) outputs.push_back(op.outputs.at(0));
  return outputs;
}

}  // namespace

TEST_CASE("what leads to a kept variable stays, what leads nowhere goes") {
  Program program;
  add_data(program, "a", DataType::float32, {-1, 2});
  add(program, "relu", {"a"}, "b");
  add(program, "exp", {"b"}, "c");
  add(program, "tanh", {"b"}, "d");
  add(program, "sqrt", {"d"}, "e");
  CHECK(outputs_of(remove_dead_code(program, {"c"})) == std::vector<std::string>{"b", "c"});
  CHECK(outputs_of(remove_dead_code(program, {"e"})) == std::vector<std::string>{"b", "d", "e"});
  CHECK(remove_dead_code(program, {"c", "e"}) == program);
  CHECK(remove_dead_code(program, {}).operators().empty());
}

TEST_CASE("what writes a persistable variable stays") {
  Program program;
  Scope scope;
  add_data(program, "a", DataType::float32, {-1, 2});
  add_parameter(program, scope, "w", floats({1}, {1}));
  add(program, "exp", {"a"}, "b");
  add(program, "mean", {"b"}, "c");
  program.append({"assign", {"c"}, {"w"}, {}});
  CHECK(remove_dead_code(program, {}).operators().size() == 3);
}

TEST_CASE("what is printed stays, and what is needed for it") {
  Program program;
  add_data(program, "a", DataType::float32, {-1, 2});
  add(program, "exp", {"a"}, "b");
  add(program, "tanh", {"a"}, "c");
  add(program, "print", {"b"}, "d");
  CHECK(outputs_of(remove_dead_code(program, {})) == std::vector<std::string>{"b", "d"});
}
