// Optimizers as data, and the two ways to apply one: update operators in the program (one process), or tables
// on parameter servers.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/program.h"

namespace fleetrun::engine {

/// Formulas, g being the gradient with its decay: sgd w -= lr*g; momentum v = momentum*v + g, w -= lr*v
/// (nesterov: lr*(g + momentum*v)); adagrad m += g*g, w -= lr*g/(sqrt(m)+epsilon); adam bias-corrected, as in
/// its paper; rmsprop s = rho*s + (1-rho)*g*g, v = momentum*v + lr*g/sqrt(s+epsilon), w -= v (centered: m =
/// rho*m + (1-rho)*g, with s - m*m instead of s); adamax, adadelta, lamb, lars_momentum, decayed_adagrad as
/// runtime/engine/operators/update_operators.cc and kUpdateRules of ps/base/table_config.h say; ftrl
/// n += g*g, z += g - (n_new^-p - n_old^-p)/lr*w, w = |z| <= l1 ? 0 : (sign(z)*l1 - z)/(n_new^-p/lr + 2*l2)
/// with p = learning_rate_power.
struct OptimizerConfig {
  enum class Kind {
    sgd,
    adagrad,
    adam,
    momentum,
    ftrl,
    rmsprop,
    adamax,
    adadelta,
    lamb,
    lars_momentum,
    decayed_adagrad
  };
  Kind kind = Kind::sgd;
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  /// Where adagrad's m and ftrl's n start.
  double initial_accumulator = 0.0;
  /// adam over row gradients: only the rows of the batch are touched.
  bool lazy_rows = false;
  /// adam: w -= lr * own_decay * w before the step (AdamW). lamb and lars_momentum: their decay.
  double own_decay = 0.0;
  /// Parameters without own_decay.
  std::set<std::string> undecayed = {};
  /// As in Paddle 1.x: adam adds epsilon as it is, instead of times sqrt(1 - beta2^t); lamb corrects no bias
  /// and adapts every parameter; adadelta, in one process and with collectives, moves by a mean of updates
  /// that has the one of this step.
  bool older_formula = false;
  /// lamb adapts the steps of parameters without decay too.
  bool always_adapts = false;
  /// adam in dense tables follows the rule adam_d2sum (ps/base/table_config.h).
  bool adam_d2sum = false;
  double lars_coefficient = 0.001;
  double momentum = 0.9;
  bool nesterov = false;
  double rho = 0.95;
  bool centered = false;
  double l1 = 0.0;
  double l2 = 0.0;
  double learning_rate_power = -0.5;
  /// Decay coefficients, 0 for none: g += l1_decay * sign(w) + l2_decay * w.
  double l1_decay = 0.0;
  double l2_decay = 0.0;
  /// What gradients are cut to before they are used or sent: each value to [clip_least, clip], or scaled down
  /// so that the norm of each parameter's, or of all together, is at most `clip`.
  enum class Clip { none, value, norm, global_norm };
  Clip clip_kind = Clip::none;
  double clip_least = 0.0;
  double clip = 0.0;
  /// Servers clip the mean over trainers, instead of each trainer what it sends.
  bool clips_means = false;
  /// What the names of a parameter's state end with, 0 for one that is not there: programs that share a
  /// parameter each keep a state of their own.
  std::map<std::string, int> state_numbers = {};
  /// A persistable float32 variable of one value, by which learning_rate is multiplied in every step: what a
  /// schedule sets. Empty for none.
  std::string rate = {};

  /// What a parameter has of its own: a factor of the learning rate, and decays instead of the optimizer's.
  struct Own {
    double rate_factor = 1.0;
    bool has_decay = false;
    double l1_decay = 0.0;
    double l2_decay = 0.0;
    bool is_clipped = true;

    bool operator==(const Own&) const = default;
  };
  std::map<std::string, Own> own = {};

  bool has_decay() const noexcept { return l1_decay != 0.0 || l2_decay != 0.0; }
  /// Whether a row without a gradient moves in every step, or the step needs all rows.
  bool takes_all_rows() const noexcept {
    return has_decay() || own_decay != 0.0 || kind == Kind::adamax || kind == Kind::adadelta ||
           kind == Kind::lamb || kind == Kind::lars_momentum || kind == Kind::decayed_adagrad;
  }
  bool operator==(const OptimizerConfig&) const = default;
};

std::string_view to_string(OptimizerConfig::Kind kind) noexcept;

/// The configuration of one parameter: its own rate and decays put in, `own` empty.
OptimizerConfig config_of(const OptimizerConfig& config, const std::string& parameter);

/// An `embedding` with is_sparse whose parameter's optimizer takes_all_rows becomes one with a dense
/// gradient. For training in one process; before the backward operators.
void decay_all_rows(Program& main, const OptimizerConfig& config);

/// Appends the operators that clip `gradients`, which name the clipped ones afterwards. Throws: Error(config)
/// for rows that are to be clipped by value.
/// role: "update" where these clip what replicas and ranks have averaged, "backward" where each clips what it
/// sends to tables.
void append_clip(Program& main, std::vector<ParameterGradient>& gradients, const OptimizerConfig& config,
                 const std::string& role = "update");

/// Appends the update operator of one parameter to `main`, and the initial values of its state to `startup`.
void append_update(Program& main, Program& startup, const ParameterGradient& gradient,
                   const OptimizerConfig& config);

/// Appends backward and update operators to `main`, and the initial values of the optimizer state to
/// `startup`. A parameter of `sparse_embedding` gets no update operator: its row gradient is pushed by the
/// runtime.
std::vector<ParameterGradient> minimize(Program& main, Program& startup, const std::string& loss,
                                        const OptimizerConfig& config);

}  // namespace fleetrun::engine
