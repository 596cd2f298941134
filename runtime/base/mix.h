// A 64-bit mixing function: what is placed, looked up, drawn or shuffled by a number begins here. Who mixes
// the same numbers for two purposes feeds it different constants, so that keys that meet on one server do not
// meet in one shard.
#pragma once

#include <cstdint>

namespace fleetrun {

/// A bijection of 64-bit words in which every input bit changes about half of the output bits.
/// Source: the finalizer of SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number
/// generators", variant 13 of Stafford).
constexpr std::uint64_t mix(std::uint64_t word) noexcept {
  word ^= word >> 30;
  word *= 0xbf58476d1ce4e5b9ULL;
  word ^= word >> 27;
  word *= 0x94d049bb133111ebULL;
  word ^= word >> 31;
  return word;
}

/// The increment of SplitMix64: successive multiples of it make a stream of independent words under mix().
inline constexpr std::uint64_t kGoldenGamma = 0x9e3779b97f4a7c15ULL;

/// SplitMix64's number after this state.
constexpr std::uint64_t split_mix(std::uint64_t state) noexcept {
  return mix(state + kGoldenGamma);
}

}  // namespace fleetrun
