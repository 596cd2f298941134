// Applies an UpdateRule (ps/table_config.h has the formulas) to one row, or to a run of a dense table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ps/table_config.h"

namespace fleetrun::ps {

/// Threads: immutable once made; apply() may run in several threads on different rows.
class Updater {
 public:
  explicit Updater(const UpdateRule& rule);

  /// Floats of optimizer state for `width` values: none, one each (adagrad) or two each (adam: m, then v).
  std::size_t state_floats(std::size_t width) const noexcept;
  /// True when apply() needs the number of updates so far (adam).
  bool counts_steps() const noexcept { return rule_.kind == UpdateRule::Kind::adam; }
  /// The state before the first update.
  void reset(std::span<float> state) const noexcept;

  /// One update of `width` values. `step` counts this row's updates, this one included; only adam reads it.
  /// Arithmetic is float32 throughout and in column order, so the same inputs give the same bits.
  void apply(float* values, float* state, const float* gradient, std::size_t width,
             std::uint32_t step) const noexcept;

 private:
  // What adam's bias correction does to the learning rate and to epsilon at a step.
  struct Correction {
    float rate;
    float epsilon;
  };
  Correction correction(std::uint32_t step) const noexcept;
  Correction compute_correction(std::uint32_t step) const noexcept;

  UpdateRule rule_;
  std::vector<Correction> corrections_;
  bool settled_ = false;
};

}  // namespace fleetrun::ps
