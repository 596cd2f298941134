// When linear and its activation must stay apart; that the fused ones compute the same: passes_test.cc.

#include <doctest/doctest.h>

#include "runtime/engine/passes/passes.h"
#include "tests/support/engine_program.h"

using namespace fleetrun::engine;
using namespace fleetrun::tests;

namespace {

struct Layer {
  Program program;
  Scope scope;

  explicit Layer(const std::string& activation) {
    add_data(program, "x", DataType::float32, {-1, 2});
    add_parameter(program, scope, "w", floats({2, 3}, {1, -2, 3, -4, 5, -6}));
    add_parameter(program, scope, "b", floats({3}, {0.5f, -0.5f, 0.25f}));
    add(program, "linear", {"x", "w", "b"}, "z");
    add(program, activation, {"z"}, "y");
    add(program, "mean", {"y"}, "loss");
  }
  bool fuses(const Kept& kept) const {
    const Program fused = fuse_linear_activation(program, kept);
    for (const Operator& op : fused.operators()) {
      if (op.type == "linear_act") return true;
    }
    return false;
  }
};

}  // namespace

TEST_CASE("relu, sigmoid and tanh go into the product, others do not") {
  CHECK(Layer("relu").fuses({"loss"}));
  CHECK(Layer("sigmoid").fuses({"loss"}));
  CHECK(Layer("tanh").fuses({"loss"}));
  CHECK(!Layer("exp").fuses({"loss"}));
}

TEST_CASE("a forward program computes the same bits") {
  Layer layer("sigmoid");
  const Tensor x = floats({2, 2}, {0.5f, -1.5f, 2.0f, 0.125f});
  Executor plain(layer.program, layer.scope),
      fused(fuse_linear_activation(layer.program, {"y"}), layer.scope);
  plain.run({{"x", &x}});
  fused.run({{"x", &x}});
  CHECK(floats_of(plain.tensor("y")) == floats_of(fused.tensor("y")));
}

TEST_CASE("a product that is read elsewhere keeps its own operator") {
  CHECK(!Layer("relu").fuses({"z"}));
  Layer twice("relu");
  add(twice.program, "exp", {"z"}, "other");
  CHECK(!twice.fuses({"loss", "other"}));
  Layer both("relu");
  add(both.program, "tanh", {"z"}, "other");
  CHECK(!both.fuses({"loss", "other"}));
}

TEST_CASE("a gradient that is read elsewhere keeps both apart") {
  Layer layer("relu");
  append_backward(layer.program, "loss");
  CHECK(layer.fuses({"loss"}));
  CHECK(!layer.fuses({"loss", "z@GRAD"}));
}
