// A window that slides over the rows and columns of images [n, channels, high, wide], or over sequences
// [n, channels, wide], which are images of height 1. Convolutions and pools share it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/engine/operators.h"

namespace fleetrun::engine {

struct WindowAxis {
  std::int64_t kernel = 1, stride = 1, before = 0, after = 0, dilation = 1;

  /// How many places the window has along an axis of `size`; -1 where the size is not known, 0 where the
  /// window is larger than the axis by its stride. `ceil` adds the last place that the axis ends within.
  std::int64_t places(std::int64_t size, bool ceil) const noexcept;
  /// The first value that place `place` covers; it may lie before the axis.
  std::int64_t start(std::int64_t place) const noexcept { return place * stride - before; }
};

struct Window {
  WindowAxis high, wide;

  /// The shape of X after this window: [n, channels, places, places]; the last dimensions may be -1 or 0.
  Shape places(const Shape& x, std::int64_t channels, bool ceil = false) const;
};

/// From the attributes strides, paddings (before and after each axis) and dilations, each with an entry (or
/// two) for every one of `kernel`'s one or two axes. Throws: Error(config) naming the attribute.
Window window_of(const Operator& op, std::span<const std::int64_t> kernel);

/// [n, channels, high, wide] of an image or a sequence.
struct ImageSize {
  explicit ImageSize(const Shape& shape);
  std::size_t plane() const noexcept { return high * wide; }
  std::size_t examples, channels, high, wide;
};

/// What a kernel works out from the shapes of so many inputs: a Plan(op, inputs…), made again only when one
/// changes, so that a step like the one before allocates nothing.
template <class Plan, std::size_t kInputs>
class PlanByShape {
 public:
  template <class... Inputs>
  const Plan& of(const Operator& op, const Inputs&... inputs) {
    static_assert(sizeof...(Inputs) == kInputs);
    const std::array<const Shape*, kInputs> now{&inputs.shape()...};
    const bool same =
        plan_ && std::ranges::equal(now, shapes_, [](const Shape* a, const Shape& b) { return *a == b; });
    if (same) return *plan_;
    plan_.emplace(op, inputs...);
    std::ranges::transform(now, shapes_.begin(), [](const Shape* shape) { return *shape; });
    return *plan_;
  }

 private:
  std::array<Shape, kInputs> shapes_;
  std::optional<Plan> plan_;
};

}  // namespace fleetrun::engine
