#include <doctest/doctest.h>

#include "runtime/engine/optimizer.h"
#include "tests/support/engine_program.h"

using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

bool has(const std::string& text, const std::string& line) {
  return text.find("  " + line + ";\n") != std::string::npos;
}

}  // namespace

TEST_CASE("a program is drawn: boxes for operators, ellipses for what is fed or kept, names on arrows") {
  Program program, startup;
  Scope scope;
  add_data(program, "x", DataType::float32, {-1, 2});
  add_parameter(program, scope, "w", floats({2, 1}, {1, 2}));
  add(program, "matmul", {"x", "w"}, "a \"b\"");
  add(program, "mean", {"a \"b\""}, "loss");
  minimize(program, startup, "loss", {});
  const std::string dot = to_dot(program);
  CHECK(dot.starts_with("digraph program {\n"));
  CHECK(dot.ends_with("}\n"));
  CHECK(has(dot, R"(op0 [label="matmul", fillcolor=white])"));
  CHECK(has(dot, R"("x" [shape=ellipse, fillcolor=lightblue, label="x [-1, 2]"])"));
  CHECK(has(dot, R"("w" [shape=ellipse, fillcolor=lightgrey, label="w [2, 1]"])"));
  CHECK(has(dot, R"("x" -> op0)"));
  CHECK(has(dot, R"(op0 -> op1 [label="a \"b\""])"));
  CHECK(has(dot, R"(op3 [label="mean_grad", fillcolor=lightyellow])"));
  CHECK(has(dot, R"(op5 [label="sgd", fillcolor=lightpink])"));
  CHECK(has(dot, R"(op5 -> "w")"));
}
