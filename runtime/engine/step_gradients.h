// The gradients of a step: what passes between the backward operators
// of a program and those that update parameters.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/engine/program.h"
#include "runtime/engine/tensor.h"

namespace fleetrun::engine {

/// A gradient between backward and update.
struct StepGradient {
  std::string parameter;
  std::string name;
  /// The variable with the keys of rows; empty for a dense gradient.
  std::string keys_name = {};
  /// Values of the parameter.
  std::size_t count = 0;
  /// The operator of the program that finishes it.
  std::size_t last_writer = 0;
  /// dense: [the parameter's shape]; rows: [n, width].
  Tensor* values = nullptr;
  /// int64 [n]; null for a dense gradient.
  Tensor* keys = nullptr;
};

/// What update operators read that operators before them make, in the order in which these finish it;
/// without tensors.
std::vector<StepGradient> gradients_of(const Program& program);

}  // namespace fleetrun::engine
