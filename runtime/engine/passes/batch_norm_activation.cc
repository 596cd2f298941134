// batch_norm -> Z, relu(Z) -> Y  becomes  batch_norm_act -> Y; and
// relu_grad(Z, Y, dY) -> dZ, batch_norm_grad(X, Scale, Mean, Variance, dZ)  becomes
// batch_norm_act_grad(X, Scale, Mean, Variance, Y, dY).
//
// Where a gradient is computed in another way, or Z or dZ is read by others, nothing changes. Paddle has the
// same as BuildStrategy.fuse_bn_act_ops.

#include "runtime/engine/passes/activation_match.h"

namespace fleetrun::engine {

namespace {

constexpr ActivatedOperator kBatchNorm{.type = "batch_norm", .gradient_type = "batch_norm_grad", .upward = 4};

void apply(Rewrite& rewrite, const ActivationMatch& match) {
  Operator forward = rewrite.op(match.first), backward;
  forward.type = "batch_norm_act";
  if (match.first_gradient) {
    backward = rewrite.op(*match.first_gradient);
    backward.type = "batch_norm_act_grad";
    backward.inputs[4] = rewrite.op(match.activation).outputs[0];
    backward.inputs.push_back(rewrite.op(*match.activation_gradient).inputs[2]);
  }
  fuse_activation(rewrite, match, std::move(forward), std::move(backward));
}

}  // namespace

Program fuse_batch_norm_activation(const Program& program, const Kept& kept) {
  Rewrite rewrite(program, kept);
  for (std::size_t i = 0; i < rewrite.size(); ++i) {
    if (const auto match = find_activation(rewrite, i, kBatchNorm)) apply(rewrite, *match);
  }
  return rewrite.result();
}

}  // namespace fleetrun::engine
