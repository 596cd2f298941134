// float16 and bfloat16 as bits, to float32 and back, without branches,
// so that loops over them vectorise on any processor.
//
// Back is rounding to nearest, ties to even; too large is infinity; a NaN stays one.
#pragma once

#include <bit>
#include <cstdint>

namespace fleetrun::collective {

[[gnu::always_inline]] inline float from_float16(std::uint16_t half) noexcept {
  const std::uint32_t magnitude = (half & 0x7fffu) << 13;
  // The exponents' biases are 112 apart. A multiplication moves subnormal values, too.
  std::uint32_t bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  bits |= magnitude >= (0x7c00u << 13) ? 0x7f800000u : 0u;
  return std::bit_cast<float>(bits | (half & 0x8000u) << 16);
}

[[gnu::always_inline]] inline std::uint16_t to_float16(float value) noexcept {
  const std::uint32_t all = std::bit_cast<std::uint32_t>(value), magnitude = all & 0x7fffffffu;
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // The addition rounds: 0.5's last place is 2^-24, the smallest float16.
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
                                  std::bit_cast<std::uint32_t>(0.5f);
  const std::uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  std::uint32_t bits = magnitude < (113u << 23) ? subnormal : normal;
  bits = magnitude >= (143u << 23) ? special : bits;
  return static_cast<std::uint16_t>(bits | (all >> 16 & 0x8000u));
}

[[gnu::always_inline]] inline float from_bfloat16(std::uint16_t half) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

[[gnu::always_inline]] inline std::uint16_t to_bfloat16(float value) noexcept {
  const std::uint32_t all = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (all + 0x7fffu + ((all >> 16) & 1u)) >> 16;
  const std::uint32_t nan = all >> 16 | 0x40u;
  return static_cast<std::uint16_t>((all & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

}  // namespace fleetrun::collective
