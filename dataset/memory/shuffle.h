// Permutations that a seed decides, whatever the number of threads and the order in which they run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fleetrun::dataset {

/// Random 64-bit words. Source: SplitMix64 (Steele, Lea, Flood 2014), a counter under a mixing function:
/// streams of different keys are independent, and any word of one can be had without those before it.
class RandomWords {
 public:
  RandomWords(std::uint64_t seed, std::uint64_t stream) noexcept
      : state_(mix(mix(seed + kStep) ^ mix(stream + 2 * kStep))) {}
  std::uint64_t next() noexcept { return mix(state_ += kStep); }
  /// A number below `bound`, which is above 0. (The bias is below bound / 2^64.)
  std::uint64_t below(std::uint64_t bound) noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{next()} * bound) >> 64);
  }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ULL;
  static constexpr std::uint64_t mix(std::uint64_t word) noexcept {
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
    return word ^ (word >> 31);
  }
  std::uint64_t state_;
};

/// Puts `values` in a random order, every order equally likely.
void shuffle(std::vector<std::uint32_t>& values, std::uint64_t seed, std::size_t threads);

/// XXH64 with seed 0, by which Paddle chooses a trainer for a line's id.
/// Source: the specification of xxHash, version 0.1.1.
std::uint64_t xxh64(std::string_view bytes) noexcept;

}  // namespace fleetrun::dataset
