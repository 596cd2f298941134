// A tensor as lines along one of its axes.
#pragma once

#include <cstddef>

#include "runtime/engine/operators/axes.h"

namespace fleetrun::engine {

/// X seen as [outer, size, inner] around one axis.
struct Lines {
  std::size_t outer = 1, size = 1, inner = 1;

  Lines(const Shape& x, std::size_t axis)
      : outer(product(x, 0, axis)),
        size(static_cast<std::size_t>(x[axis])),
        inner(product(x, axis + 1, x.size())) {}
  explicit Lines(std::size_t all) : size(all) {}

  /// body(number of the line, its first value); values are `inner` apart.
  template <class Body>
  void for_each(const Body& body) const {
    for (std::size_t o = 0; o < outer; ++o) {
      for (std::size_t i = 0; i < inner; ++i) body(o * inner + i, o * size * inner + i);
    }
  }
};

}  // namespace fleetrun::engine
