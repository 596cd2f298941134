// Broadcasting as numpy does it, cut into runs: stretches of the output over which each operand either walks
// along or stands still.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "runtime/engine/program.h"

namespace fleetrun::engine {

class Broadcast {
 public:
  /// Aligns y's shape to x's: at their ends when axis is -1, else y's first dimension at x's dimension `axis`
  /// (Paddle's elementwise axis). Returns false when the shapes do not agree. Memory is kept from call to
  /// call; -1 is not allowed.
  bool plan(const Shape& x, const Shape& y, std::int64_t axis);

  const Shape& shape() const noexcept { return shape_; }
  std::size_t run() const noexcept { return run_; }
  /// 0 or 1: whether x (y) walks along a run.
  std::size_t step_x() const noexcept { return step_x_; }
  std::size_t step_y() const noexcept { return step_y_; }

  /// body(out, x, y): first positions of each run.
  template <class Body>
  void for_each_run(const Body& body) const {
    std::size_t x = 0, y = 0, out = 0;
    std::vector<std::size_t> at(outer_.size(), 0);
    if (runs_ == 0) return;
    for (std::size_t r = 0;; out += run_) {
      body(out, x, y);
      if (++r == runs_) return;
      for (std::size_t d = outer_.size(); d-- > 0;) {
        x += outer_[d].x;
        y += outer_[d].y;
        if (++at[d] < outer_[d].size) break;
        x -= outer_[d].x * outer_[d].size;
        y -= outer_[d].y * outer_[d].size;
        at[d] = 0;
      }
    }
  }

 private:
  struct Dimension {
    std::size_t size, x, y;
  };
  Shape shape_;
  Shape aligned_x_, aligned_y_;
  std::vector<Dimension> outer_;
  std::size_t run_ = 1, runs_ = 1, step_x_ = 1, step_y_ = 1;
};

/// The shape two operands give; -1 where unknown. Returns false when they do not agree.
bool broadcast_shape(const Shape& x, const Shape& y, std::int64_t axis, Shape& result);

}  // namespace fleetrun::engine
