// Which of a line's values are chosen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fleetrun::engine {

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
