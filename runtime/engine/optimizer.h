// Optimizers as data, and the two ways to apply one: update operators in the program (one process), or tables
// on parameter servers.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/program.h"

namespace fleetrun::engine {

/// Formulas: adagrad m += g*g, w -= lr*g/(sqrt(m)+epsilon); adam bias-corrected, as in its paper.
struct OptimizerConfig {
  enum class Kind { sgd, adagrad, adam };
  Kind kind = Kind::sgd;
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double initial_accumulator = 0.0;
  /// adam over row gradients: only the rows of the batch are touched.
  bool lazy_rows = false;
  /// L2Decay coefficient, 0 for none: g += coefficient * w.
  double l2_decay = 0.0;

  bool operator==(const OptimizerConfig&) const = default;
};

std::string_view to_string(OptimizerConfig::Kind kind) noexcept;

/// Appends the update operator of one parameter to `main`, and the initial values of its state to `startup`.
void append_update(Program& main, Program& startup, const ParameterGradient& gradient,
                   const OptimizerConfig& config);

/// Appends backward and update operators to `main`, and the initial values of the optimizer state to
/// `startup`. A parameter of `sparse_embedding` gets no update operator: its row gradient is pushed by the
/// runtime.
std::vector<ParameterGradient> minimize(Program& main, Program& startup, const std::string& loss,
                                        const OptimizerConfig& config);

}  // namespace fleetrun::engine
