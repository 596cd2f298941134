// How far two boxes overlap. A box is x and y of its first corner, then of its last.
#pragma once

#include <algorithm>

namespace fleetrun::engine {

/// The area that both share, divided by that of both. rim: 1 where sides are whole pixels, with the last one,
/// else 0.
inline float overlap_of(const float* a, const float* b, float rim) {
  const auto area = [rim](float width, float height) {
    return std::max(width + rim, 0.0f) * std::max(height + rim, 0.0f);
  };
  const float shared =
      area(std::min(a[2], b[2]) - std::max(a[0], b[0]), std::min(a[3], b[3]) - std::max(a[1], b[1]));
  const float both = area(a[2] - a[0], a[3] - a[1]) + area(b[2] - b[0], b[3] - b[1]) - shared;
  return shared / (both + 1e-10f);
}

}  // namespace fleetrun::engine
