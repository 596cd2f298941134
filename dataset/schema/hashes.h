// The hashes of a schema: text to a number that any language can compute again. Both can be fed in pieces, so
// what is hashed in front of a value (a prefix) is worked off once.
//
//   crc32   32 bits, zlib's:        zlib.crc32(text) in Python
//   fnv1a   64 bits, FNV-1a:        h = 0xcbf29ce484222325; for b in text:
//                                   h = (h ^ b) * 0x100000001b3 % 2**64
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace fleetrun::dataset {

/// Of CRC-32, for eight bytes at a time ("slicing by 8", Kounavis and Berry 2005).
extern const std::array<std::array<std::uint32_t, 256>, 8> kCrc32Tables;

/// crc32() of exactly eight bytes: the size of most hashed values.
inline std::uint32_t crc32_of_eight(const char* text, std::uint32_t before) noexcept {
  const auto& tables = kCrc32Tables;
  std::uint64_t word;
  std::memcpy(&word, text, 8);
  word ^= ~before;
  return ~(tables[7][word & 0xff] ^ tables[6][(word >> 8) & 0xff] ^ tables[5][(word >> 16) & 0xff] ^
           tables[4][(word >> 24) & 0xff] ^ tables[3][(word >> 32) & 0xff] ^ tables[2][(word >> 40) & 0xff] ^
           tables[1][(word >> 48) & 0xff] ^ tables[0][word >> 56]);
}

/// The hash of what `before` is the hash of, followed by `text`; crc32("") is 0.
std::uint32_t crc32(std::string_view text, std::uint32_t before = 0) noexcept;

inline constexpr std::uint64_t kFnv1aOfNothing = 0xcbf29ce484222325;
std::uint64_t fnv1a(std::string_view text, std::uint64_t before = kFnv1aOfNothing) noexcept;

/// number % divisor without a division: for many numbers and one divisor (Lemire, Kaser and Kurz 2019,
/// "Faster remainder by direct computation").
class Remainder32 {
 public:
  Remainder32() noexcept : Remainder32(1) {}
  explicit Remainder32(std::uint32_t divisor) noexcept
      : divisor_(divisor), inverse_(~std::uint64_t{0} / divisor + 1) {}
  std::uint32_t operator()(std::uint32_t number) const noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint32_t>((static_cast<Wide>(inverse_ * number) * divisor_) >> 64);
  }

 private:
  std::uint32_t divisor_;
  std::uint64_t inverse_;
};

}  // namespace fleetrun::dataset
