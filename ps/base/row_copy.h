// Copies of single rows. They are short and of a width that the compiler does not know, and a call of
// memcpy() for each costs more than the copy.
#pragma once

#include <cstddef>
#include <cstring>

namespace fleetrun::ps {

inline void copy_row(float* to, const float* from, std::size_t width) noexcept {
  std::size_t i = 0;
  for (; i + 8 <= width; i += 8) std::memcpy(to + i, from + i, 8 * sizeof(float));
  if (width - i >= 4) {
    std::memcpy(to + i, from + i, 4 * sizeof(float));
    i += 4;
  }
  if (width - i >= 2) {
    std::memcpy(to + i, from + i, 2 * sizeof(float));
    i += 2;
  }
  if (i < width) to[i] = from[i];
}

}  // namespace fleetrun::ps
