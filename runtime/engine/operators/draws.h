// The random numbers of an operator, run after run.
#pragma once

#include <cstdint>

#include "runtime/engine/operators.h"
#include "runtime/engine/random.h"

namespace fleetrun::engine {

/// New numbers in every run, but with an attribute `seed` that is not 0 the same ones, which other operators
/// with this seed have, too, as in Paddle.
class Draws {
 public:
  explicit Draws(const Preparation& p) : seed_(p.seed) {
    const auto own = static_cast<std::uint64_t>(attribute(p.op, "seed", std::int64_t{0}));
    repeats_ = own != 0;
    if (repeats_) seed_ = split_mix(own);
  }

  void begin_run() noexcept {
    if (repeats_) drawn_ = 0;
  }
  /// In (0, 1).
  double uniform() noexcept { return engine::uniform(seed_, drawn_++); }
  /// Mean 0, standard deviation 1.
  double normal() noexcept { return engine::normal(seed_, drawn_++); }

 private:
  std::uint64_t seed_, drawn_ = 0;
  bool repeats_ = false;
};

}  // namespace fleetrun::engine
