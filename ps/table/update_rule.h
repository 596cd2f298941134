// Applies an UpdateRule to one row, or to a run of a dense table. kUpdateRules in ps/base/table_config.h has
// the formulas, and what each keeps of a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ps/base/table_config.h"

namespace fleetrun::ps {

/// Threads: immutable once made; apply() may run in several threads on different rows.
class Updater {
 public:
  explicit Updater(const UpdateRule& rule);

  const UpdateRule& rule() const noexcept { return rule_; }
  /// Floats of optimizer state for a row of `width` values.
  std::size_t state_floats(std::size_t width) const noexcept;
  /// True when apply() needs the number of updates so far.
  bool counts_steps() const noexcept {
    return rule_.kind == UpdateRule::Kind::adam || rule_.kind == UpdateRule::Kind::adamax;
  }
  /// The state of one row before the first update.
  void reset(std::span<float> state) const noexcept;

  /// One update of a row of `width` values. `step` counts its updates, this one included: counts_steps().
  /// `scale` is what shared_adagrad and std_adagrad divide the gradient by; `rate` is the push's, for a rule
  /// that is scheduled.
  /// Arithmetic is float32 throughout and in column order, so the same inputs give the same bits.
  void apply(float* values, float* state, const float* gradient, std::size_t width, std::uint32_t step,
             float scale = 1.0f, float rate = 1.0f) const noexcept;

  /// Floats of state per value of a dense table, where what a row has once is the table's: the powers follow
  /// from its step count. Check that is_for_dense() first.
  std::size_t dense_state_floats() const noexcept;
  /// One update of a run of a dense table at its `step`-th push. Shape: state[dense_state_floats(), width].
  void apply_dense(float* values, float* state, const float* gradient, std::size_t width, std::uint32_t step,
                   float rate = 1.0f) const noexcept;
  void reset_dense(std::span<float> state) const noexcept;
  /// False for rules that share one state over the values of a row: a dense table has no rows.
  static bool is_for_dense(UpdateRule::Kind kind) noexcept {
    return kind != UpdateRule::Kind::shared_adagrad && kind != UpdateRule::Kind::shared_adam;
  }

 private:
  // What adam's bias correction does to the learning rate and to epsilon at a step.
  struct Correction {
    float rate;
    float epsilon;
  };
  Correction correction(std::uint32_t step, float rate) const noexcept;
  Correction compute_correction(std::uint32_t step) const noexcept;
  template <class Gradient>
  void update(const UpdateRule& rule, float* values, float* state, Gradient gradient, std::size_t width,
              std::uint32_t step, float scale, float rate) const noexcept;

  // apply() by `rule`, whose learning rate has the push's `rate` in it.
  void move(const UpdateRule& rule, float* values, float* state, const float* gradient, std::size_t width,
            std::uint32_t step, float scale, float rate) const noexcept;

  UpdateRule rule_;
  bool decays_;
  bool bounds_;
  std::vector<Correction> corrections_;
  bool settled_ = false;
};

}  // namespace fleetrun::ps
