// linear_grad(X, W, dZ) -> dX, dW, dB and sgd(W, dW) -> W, sgd(B, dB) -> B  become
// linear_sgd(X, W, dZ, …) -> dX, W, B, and
// linear_act_grad likewise: the product adds to the weight what would have gone through memory twice more. W
// and B are taken each for itself; the other's gradient stays.
//
// A parameter's step stays where it is when its gradient is read elsewhere too, has rows or decays, when its
// rate is made later, or when anything between the gradient and the step reads or changes the parameter.

#include <algorithm>

#include "runtime/engine/operators.h"
#include "runtime/engine/passes/rewrite.h"

namespace fleetrun::engine {

namespace {

bool is_gradient(const Operator& op) {
  return op.type == "linear_grad" || op.type == "linear_act_grad";
}

bool has_decay(const Operator& sgd) {
  return attribute(sgd, "l1_decay", 0.0) != 0.0 || attribute(sgd, "l2_decay", 0.0) != 0.0;
}

/// Whether one of these operators lies between the two, which do not count.
bool any_between(const std::vector<std::size_t>& operators, std::size_t first, std::size_t last) {
  return std::ranges::any_of(operators, [&](std::size_t i) { return i > first && i < last; });
}

/// The sgd that can be done by the operator `gradient`, which makes `name`.
std::optional<std::size_t> find_step(const Rewrite& rewrite, std::size_t gradient, const std::string& name) {
  if (!rewrite.is_passing(name) || rewrite.readers(name).size() != 1) return std::nullopt;
  const std::size_t step = rewrite.readers(name).front();
  const Operator& sgd = rewrite.op(step);
  if (step < gradient || sgd.type != "sgd" || sgd.inputs.at(1) != name || !sgd.inputs.at(2).empty() ||
      has_decay(sgd))
    return std::nullopt;
  const std::string& parameter = sgd.inputs[0];
  const std::string& rate = sgd.inputs.at(3);
  if (any_between(rewrite.readers(parameter), gradient, step) ||
      any_between(rewrite.writers(parameter), gradient, step) ||
      any_between(rewrite.writers(rate), gradient, step))
    return std::nullopt;
  return step;
}

void apply(Rewrite& rewrite, std::size_t index) {
  Operator op = rewrite.op(index);
  bool changes = false;
  std::size_t output = 1;
  for (const char* rate : {"weight_rate", "bias_rate"}) {
    const auto step = output < op.outputs.size() ? find_step(rewrite, index, op.outputs[output])
                                                 : std::optional<std::size_t>();
    if (step) {
      const Operator& sgd = rewrite.op(*step);
      op.attributes[rate] = attribute(sgd, "learning_rate", 0.001);
      op.outputs[output] = sgd.outputs.at(0);
      changes = true;
      rewrite.drop(*step);
    }
    op.inputs.push_back(step ? rewrite.op(*step).inputs[3] : std::string());
    ++output;
  }
  if (!changes) return;
  op.type = op.type == "linear_grad" ? "linear_sgd" : "linear_act_sgd";
  rewrite.replace(index, {std::move(op)});
}

}  // namespace

Program fuse_linear_sgd(const Program& program, const Kept& kept) {
  Rewrite rewrite(program, kept);
  for (std::size_t i = 0; i < rewrite.size(); ++i) {
    if (is_gradient(rewrite.op(i))) apply(rewrite, i);
  }
  return rewrite.result();
}

}  // namespace fleetrun::engine
