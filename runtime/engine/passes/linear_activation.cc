// linear -> Z, relu(Z) -> Y  becomes  linear_act -> Y; and
// relu_grad(Z, Y, dY) -> dZ, linear_grad(X, W, dZ) -> dX, dW, dB  becomes  linear_act_grad(X, W, Y, dY) -> dX, dW, dB.
//
// Where a gradient is computed in another way, or Z or dZ is read by others, nothing changes.

#include <algorithm>
#include <array>

#include "runtime/engine/operators.h"
#include "runtime/engine/passes/rewrite.h"

namespace fleetrun::engine {

namespace {

constexpr std::array<std::string_view, 3> kActivations{"relu", "sigmoid", "tanh"};

/// The four operators; the gradients are missing in a program that does not train.
struct Match {
  std::size_t linear;
  std::size_t activation;
  std::optional<std::size_t> activation_gradient;
  std::optional<std::size_t> linear_gradient;
};

/// relu_grad and linear_grad behind each other, nothing else reading or changing what they pass on.
bool find_gradients(const Rewrite& rewrite, Match& match, std::size_t candidate) {
  const Operator& activation = rewrite.op(match.activation);
  const Operator& gradient = rewrite.op(candidate);
  if (gradient.type != activation.type + "_grad" || gradient.inputs.size() != 3) return false;
  if (gradient.inputs[1] != activation.outputs[0] || gradient.inputs[2].empty()) return false;
  const std::string& dz = gradient.outputs.at(0);
  if (!rewrite.is_passing(dz) || rewrite.readers(dz).size() != 1) return false;
  const std::size_t behind = rewrite.readers(dz).front();
  if (behind <= candidate || rewrite.op(behind).type != "linear_grad" ||
      rewrite.op(behind).inputs.at(2) != dz)
    return false;
  const auto& writers = rewrite.writers(gradient.inputs[2]);
  if (std::ranges::any_of(writers, [&](std::size_t w) { return w > candidate; })) return false;
  match.activation_gradient = candidate;
  match.linear_gradient = behind;
  return true;
}

std::optional<Match> find_match(const Rewrite& rewrite, std::size_t linear) {
  const Operator& op = rewrite.op(linear);
  if (op.type != "linear" || !rewrite.is_passing(op.outputs.at(0))) return std::nullopt;
  const std::string& z = op.outputs[0];
  Match match{linear, 0, std::nullopt, std::nullopt};
  std::optional<std::size_t> gradient;
  for (const std::size_t reader : rewrite.readers(z)) {
    const bool activates = std::ranges::find(kActivations, rewrite.op(reader).type) != kActivations.end();
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
  if (gradient && !find_gradients(rewrite, match, *gradient)) return std::nullopt;
  return match;
}

void apply(Rewrite& rewrite, const Match& match) {
  const std::string& activation = rewrite.op(match.activation).type;
  Operator forward = rewrite.op(match.linear);
  forward.type = "linear_act";
  forward.outputs = rewrite.op(match.activation).outputs;
  forward.attributes["activation"] = activation;
  const std::string y = forward.outputs[0];
  rewrite.replace(match.linear, {std::move(forward)});
  rewrite.drop(match.activation);
  if (!match.linear_gradient) return;
  Operator backward = rewrite.op(*match.linear_gradient);
  backward.type = "linear_act_grad";
  backward.inputs = {backward.inputs[0], backward.inputs[1], y,
                     rewrite.op(*match.activation_gradient).inputs[2]};
  backward.attributes["activation"] = activation;
  rewrite.replace(*match.linear_gradient, {std::move(backward)});
  rewrite.drop(*match.activation_gradient);
}

}  // namespace

Program fuse_linear_activation(const Program& program, const Kept& kept) {
  Rewrite rewrite(program, kept);
  for (std::size_t i = 0; i < rewrite.size(); ++i) {
    if (const auto match = find_match(rewrite, i)) apply(rewrite, *match);
  }
  return rewrite.result();
}

}  // namespace fleetrun::engine
