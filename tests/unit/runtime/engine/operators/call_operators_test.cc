// Operators that call a function of the process, and their gradients.

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "runtime/engine/operators/callbacks.h"
#include "tests/support/engine_program.h"

using namespace fleetrun;
using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

void add_out(Program& program, const std::string& name, const Shape& shape) {
  Variable out;
  out.name = name;
  out.shape = shape;
  out.stop_gradient = false;
  program.add_variable(out);
}

/// Tensors value by value: out[k] = of(k).
template <class Of>
void fill(Tensor& out, const Tensor& like, const Of& of) {
  out.resize(DataType::float32, like.shape());
  for (std::size_t k = 0; k < like.size(); ++k) out.values<float>()[k] = of(k);
}

}  // namespace

TEST_CASE("an operator calls a function, and its gradient another") {
  const std::int64_t square = keep_callback([](auto inputs, auto outputs) {
    const auto x = inputs[0]->template values<float>();
    fill(*outputs[0], *inputs[0], [&](std::size_t k) { return x[k] * x[k]; });
  });
  // Without the output, which is skipped: the input and the output's gradient.
  const std::int64_t slope = keep_callback([](auto inputs, auto outputs) {
    REQUIRE(inputs.size() == 2);
    const auto x = inputs[0]->template values<float>(), g = inputs[1]->template values<float>();
    fill(*outputs[0], *inputs[0], [&](std::size_t k) { return 2.0f * x[k] * g[k]; });
  });
  Program program;
  Scope scope;
  add_parameter(program, scope, "x", floats({3}, {1, -2, 3}));
  add_out(program, "y", {3});
  program.append({"call",
                  {"x"},
                  {"y"},
                  {{"function", square}, {"backward", slope}, {"skipped", std::vector<std::string>{"y"}}}});
  add(program, "sum", {"y"}, "loss");
  const auto gradients = append_backward(program, "loss");
  Executor executor(program, scope);
  executor.run({});
  CHECK(floats_of(executor.tensor("y")) == std::vector<float>{1, 4, 9});
  CHECK(floats_of(executor.tensor(gradients.at(0).gradient)) == std::vector<float>{2, -4, 6});
}

TEST_CASE("a function of another process is refused by name") {
  Program program;
  Scope scope;
  add_out(program, "y", {1});
  program.append({"call", {}, {"y"}, {{"function", std::int64_t{1}}}});
  try {
    Executor executor(program, scope);
    FAIL("it was prepared");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("none of this process") != std::string::npos);
  }
}
