// linear -> Z, relu(Z) -> Y  becomes  linear_act -> Y; and
// relu_grad(Z, Y, dY) -> dZ, linear_grad(X, W, dZ) -> dX, dW, dB  becomes  linear_act_grad(X, W,
//                                                                          Y, dY) -> dX, dW, dB.
//
// Where a gradient is computed in another way, or Z or dZ is read by others, nothing changes.

#include "runtime/engine/passes/activation_match.h"

namespace fleetrun::engine {

namespace {

constexpr ActivatedOperator kLinear{.type = "linear", .gradient_type = "linear_grad", .upward = 2};

void apply(Rewrite& rewrite, const ActivationMatch& match) {
  Operator forward = rewrite.op(match.first), backward;
  forward.type = "linear_act";
  if (match.first_gradient) {
    backward = rewrite.op(*match.first_gradient);
    backward.type = "linear_act_grad";
    backward.inputs = {backward.inputs[0], backward.inputs[1], rewrite.op(match.activation).outputs[0],
                       rewrite.op(*match.activation_gradient).inputs[2]};
  }
  fuse_activation(rewrite, match, std::move(forward), std::move(backward));
}

}  // namespace

Program fuse_linear_activation(const Program& program, const Kept& kept) {
  Rewrite rewrite(program, kept);
  for (std::size_t i = 0; i < rewrite.size(); ++i) {
    if (const auto match = find_activation(rewrite, i, kLinear)) apply(rewrite, *match);
  }
  return rewrite.result();
}

}  // namespace fleetrun::engine
