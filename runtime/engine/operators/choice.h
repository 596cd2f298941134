// Which of a line's values are chosen.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace fleetrun::engine {

/// Whole numbers are never NaN.
template <class T>
bool is_nan(T x) noexcept {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  return false;
}

/// Moves the k places that come first to the front, in order. Those of equal values are the ones that
/// Paddle's calls of these algorithms choose: which of them stay decides which have a gradient.
template <class Before>
void choose(std::int64_t k, std::vector<std::int64_t>& places, const Before& before) {
  if (static_cast<std::size_t>(k) * 64 < places.size()) {
    std::partial_sort(places.begin(), places.begin() + k, places.end(), before);
  } else {
    std::nth_element(places.begin(), places.begin() + k - 1, places.end(), before);
    std::sort(places.begin(), places.begin() + k - 1, before);
  }
}

}  // namespace fleetrun::engine
