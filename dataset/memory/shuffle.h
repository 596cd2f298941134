// Permutations that a seed decides, whatever the number of threads and the order in which they run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/mix.h"

namespace fleetrun::dataset {

/// Random 64-bit words. Source: SplitMix64 (Steele, Lea, Flood 2014), a counter under a mixing function:
/// streams of different keys are independent, and any word of one can be had without those before it.
class RandomWords {
 public:
  RandomWords(std::uint64_t seed, std::uint64_t stream) noexcept
      : state_(mix(split_mix(seed) ^ split_mix(stream + kGoldenGamma))) {}
  std::uint64_t next() noexcept { return mix(state_ += kGoldenGamma); }
  /// A number below `bound`, which is above 0. (The bias is below bound / 2^64.)
  std::uint64_t below(std::uint64_t bound) noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{next()} * bound) >> 64);
  }

 private:
  std::uint64_t state_;
};

/// Puts `values` in a random order, every order equally likely.
void shuffle(std::vector<std::uint32_t>& values, std::uint64_t seed, std::size_t threads);

/// XXH64 with seed 0, by which Paddle chooses a trainer for a line's id.
/// Source: the specification of xxHash, version 0.1.1.
std::uint64_t xxh64(std::string_view bytes) noexcept;

}  // namespace fleetrun::dataset
