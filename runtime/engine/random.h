// Counter-based random numbers: value k of stream `seed` is a pure function of both, so that a parameter gets
// the same first values wherever and in whatever order it is filled.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include "runtime/base/mix.h"

namespace fleetrun::engine {

/// A stream's seed from a program's (or an operator's) seed and a variable's name.
inline std::uint64_t stream_seed(std::uint64_t seed, std::string_view name) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return split_mix(split_mix(seed) ^ hash);
}

/// In (0, 1).
inline double uniform(std::uint64_t seed, std::uint64_t k) noexcept {
  return (static_cast<double>(split_mix(seed + k * kGoldenGamma) >> 11) + 0.5) * 0x1.0p-53;
}

/// Mean 0, standard deviation 1 (Box and Muller).
inline double normal(std::uint64_t seed, std::uint64_t k) noexcept {
  const double radius = std::sqrt(-2.0 * std::log(uniform(seed, 2 * k)));
  return radius * std::cos(2.0 * std::numbers::pi * uniform(seed, 2 * k + 1));
}

/// The same, drawn again until it is within two standard deviations.
inline double truncated_normal(std::uint64_t seed, std::uint64_t k) noexcept {
  for (std::uint64_t attempt = seed;; attempt = split_mix(attempt)) {
    const double value = normal(attempt, k);
    if (value >= -2.0 && value <= 2.0) return value;
  }
}

}  // namespace fleetrun::engine
