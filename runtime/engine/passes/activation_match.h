// An operator, the activation behind it, and their two gradients, for passes that make one operator of the
// first two and one of the others.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "runtime/engine/passes/rewrite.h"

namespace fleetrun::engine {

/// What the operator is, and where its gradient has what it is computed from.
struct ActivatedOperator {
  std::string_view type;
  std::string_view gradient_type;
  /// The gradient operator's input that is the gradient of the operator's first output.
  std::size_t upward = 0;
};

/// Indexes of operators; the gradients are missing in a program that does not train.
struct ActivationMatch {
  std::size_t first = 0;
  std::size_t activation = 0;
  std::optional<std::size_t> activation_gradient = std::nullopt;
  std::optional<std::size_t> first_gradient = std::nullopt;
};

/// The match that begins at `index`: Z = first(…), Y = activation(Z), and backwards dZ = activation_grad(Z,
/// Y, dY), first_grad(…, dZ). None where Z or dZ is kept or has other readers,
/// or a gradient is computed in another way.
std::optional<ActivationMatch> find_activation(const Rewrite& rewrite, std::size_t index,
                                               const ActivatedOperator& wanted);

/// Puts `forward`, which gets the attribute `activation` and makes Y, in the place of the first two, and
/// `backward` in that of their gradients, where there are any.
void fuse_activation(Rewrite& rewrite, const ActivationMatch& match, Operator forward, Operator backward);

}  // namespace fleetrun::engine
