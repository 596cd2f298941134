// The numbers of MultiSlot text, written: ids as digits, floats as Python's str() shows them, so that a
// native reader and one in Python give the same bytes.
//
// Each function writes at `out`, which needs kNumberBytes, and returns the end.
// Nothing here depends on the locale.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fleetrun::dataset {

/// The longest number: -2.2250738585072014e-308 has 24 bytes; the rest is room for whole words.
inline constexpr std::size_t kNumberBytes = 32;

static_assert(std::endian::native == std::endian::little, "the first digit must be the lowest byte");

/// The eight digits of a number below 10^8 as the bytes of a word, values 0 to 9, first digit lowest.
inline std::uint64_t eight_digits(std::uint32_t number) noexcept {
  // Halves, then pairs, then digits, each time all at once;
  // a division by a constant is a multiplication and a shift.
  const std::uint64_t halves = number / 10000 + (std::uint64_t{number % 10000} << 32);
  const std::uint64_t hundreds = ((halves * 10486) >> 20) & 0x0000007F0000007F;
  const std::uint64_t pairs = hundreds + ((halves - 100 * hundreds) << 16);
  const std::uint64_t tens = ((pairs * 103) >> 10) & 0x000F000F000F000F;
  return tens + ((pairs - 10 * tens) << 8);
}

/// Three digits each: as they are, and without zeros in front, with their number in the fourth byte.
struct DigitTables {
  std::array<std::uint32_t, 1000> all{};
  std::array<std::uint32_t, 1000> short_ones{};
};
extern const DigitTables kDigitTables;

/// A number below 10^8.
inline char* print_short(char* out, std::uint32_t number) noexcept {
  if (number - 1000 < 999000) {  // the usual one
    const std::uint32_t high = kDigitTables.short_ones[number / 1000];
    std::memcpy(out, &high, 4);
    out += high >> 24;
    std::memcpy(out, &kDigitTables.all[number % 1000], 4);
    return out + 3;
  }
  const std::uint64_t digits = eight_digits(number);
  const auto zeros = static_cast<unsigned>(std::countr_zero(digits | std::uint64_t{1} << 56)) / 8;
  const std::uint64_t text = (digits | 0x3030303030303030) >> (8 * zeros);
  std::memcpy(out, &text, 8);
  return out + 8 - zeros;
}

char* print_unsigned(char* out, std::uint64_t value) noexcept;
char* print_signed(char* out, std::int64_t value) noexcept;

/// The fewest digits that read back as `value`: 0.1, 1e-05, 3.0, 1e+16, nan, inf.
char* print_double(char* out, double value) noexcept;

}  // namespace fleetrun::dataset
