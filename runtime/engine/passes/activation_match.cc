#include "runtime/engine/passes/activation_match.h"

#include <algorithm>
#include <utility>

#include "runtime/engine/operators/activation_formula.h"

namespace fleetrun::engine {

namespace {

/// relu_grad and first_grad behind each other, nothing else reading or changing what they pass on.
bool find_gradients(const Rewrite& rewrite, ActivationMatch& match, std::size_t candidate,
                    const ActivatedOperator& wanted) {
  const Operator& activation = rewrite.op(match.activation);
  const Operator& gradient = rewrite.op(candidate);
  if (gradient.type != activation.type + "_grad" || gradient.inputs.size() != 3) return false;
  if (gradient.inputs[1] != activation.outputs[0] || gradient.inputs[2].empty()) return false;
  const std::string& dz = gradient.outputs.at(0);
  if (!rewrite.is_passing(dz) || rewrite.readers(dz).size() != 1) return false;
  const std::size_t behind = rewrite.readers(dz).front();
  if (behind <= candidate || rewrite.op(behind).type != wanted.gradient_type ||
      rewrite.op(behind).inputs.at(wanted.upward) != dz)
    return false;
  const auto& writers = rewrite.writers(gradient.inputs[2]);
  if (std::ranges::any_of(writers, [&](std::size_t w) { return w > candidate; })) return false;
  match.activation_gradient = candidate;
  match.first_gradient = behind;
  return true;
}

}  // namespace

std::optional<ActivationMatch> find_activation(const Rewrite& rewrite, std::size_t index,
                                               const ActivatedOperator& wanted) {
  const Operator& op = rewrite.op(index);
  if (op.type != wanted.type || !rewrite.is_passing(op.outputs.at(0))) return std::nullopt;
  const std::string& z = op.outputs[0];
  ActivationMatch match{.first = index};
  std::optional<std::size_t> gradient;
  for (const std::size_t reader : rewrite.readers(z)) {
    const bool activates =
        std::ranges::find(fused::kActivations, rewrite.op(reader).type) != fused::kActivations.end();
    if (activates && match.activation == 0) {
      match.activation = reader;
    } else if (!gradient) {
      gradient = reader;
    } else {
      return std::nullopt;
    }
  }
  if (match.activation == 0) return std::nullopt;
  if (rewrite.writers(rewrite.op(match.activation).outputs[0]).size() != 1) return std::nullopt;
  if (gradient && !find_gradients(rewrite, match, *gradient, wanted)) return std::nullopt;
  return match;
}

void fuse_activation(Rewrite& rewrite, const ActivationMatch& match, Operator forward, Operator backward) {
  const std::string& activation = rewrite.op(match.activation).type;
  forward.outputs.at(0) = rewrite.op(match.activation).outputs[0];
  forward.attributes["activation"] = activation;
  rewrite.replace(match.first, {std::move(forward)});
  rewrite.drop(match.activation);
  if (!match.first_gradient) return;
  backward.attributes["activation"] = activation;
  rewrite.replace(*match.first_gradient, {std::move(backward)});
  rewrite.drop(*match.activation_gradient);
}

}  // namespace fleetrun::engine
