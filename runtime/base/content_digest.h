// A 64-bit digest of bytes that arrive in parts: XXH64 with seed 0 (its published specification,
// doc/xxhash_spec.md of version 0.1.1). It tells files apart and finds accidents; it is not a defence against
// who wants two files to look alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace fleetrun {

class ContentDigest {
 public:
  void add(std::span<const std::byte> bytes) noexcept;
  /// Of everything added so far.
  std::uint64_t value() const noexcept;

 private:
  static constexpr std::size_t kStripe = 32;
  void add_stripe(const std::byte* stripe) noexcept;

  std::array<std::uint64_t, 4> lanes_ = {0x60ea27eeadc0b5d6ULL, 0xc2b2ae3d27d4eb4fULL, 0,
                                         0x61c8864e7a143579ULL};
  std::array<std::byte, kStripe> rest_;
  std::uint64_t size_ = 0;
};

}  // namespace fleetrun
