// Eight digits at a time in one 64-bit word; the digits of a double are those of std::to_chars, moved to where Python's
// repr() has its point and its exponent.
#include "dataset/number_print.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

namespace fleetrun::dataset {
namespace {

static_assert(std::endian::native == std::endian::little, "the first digit must be the lowest byte");

constexpr std::uint64_t kZeros = 0x3030303030303030;

/// The eight digits of a number below 10^8 as the bytes of a word, values 0 to 9, first digit lowest.
std::uint64_t eight_digits(std::uint32_t number) noexcept {
  // Halves, then pairs, then digits, each time all at once; a division by a constant is a multiplication and a shift.
  const std::uint64_t halves = number / 10000 + (std::uint64_t{number % 10000} << 32);
  const std::uint64_t hundreds = ((halves * 10486) >> 20) & 0x0000007F0000007F;
  const std::uint64_t pairs = hundreds + ((halves - 100 * hundreds) << 16);
  const std::uint64_t tens = ((pairs * 103) >> 10) & 0x000F000F000F000F;
  return tens + ((pairs - 10 * tens) << 8);
}

char* print_eight(char* out, std::uint32_t number) noexcept {
  const std::uint64_t text = eight_digits(number) | kZeros;
  std::memcpy(out, &text, 8);
  return out + 8;
}

/// Without zeros in front.
char* print_short(char* out, std::uint32_t number) noexcept {
  const std::uint64_t digits = eight_digits(number);
  const auto zeros = static_cast<unsigned>(std::countr_zero(digits | std::uint64_t{1} << 56)) / 8;
  const std::uint64_t text = (digits | kZeros) >> (8 * zeros);
  std::memcpy(out, &text, 8);
  return out + 8 - zeros;
}

}  // namespace

char* print_unsigned(char* out, std::uint64_t value) noexcept {
  constexpr std::uint32_t base = 100000000;
  if (value < base) return print_short(out, static_cast<std::uint32_t>(value));
  const std::uint64_t high = value / base;
  const auto low = static_cast<std::uint32_t>(value % base);
  if (high < base) return print_eight(print_short(out, static_cast<std::uint32_t>(high)), low);
  out = print_short(out, static_cast<std::uint32_t>(high / base));
  return print_eight(print_eight(out, static_cast<std::uint32_t>(high % base)), low);
}

char* print_signed(char* out, std::int64_t value) noexcept {
  if (value >= 0) return print_unsigned(out, static_cast<std::uint64_t>(value));
  *out = '-';
  return print_unsigned(out + 1, 0 - static_cast<std::uint64_t>(value));
}

char* print_double(char* out, double value) noexcept {
  if (std::isnan(value)) return std::strcpy(out, "nan") + 3;
  if (std::signbit(value)) {
    *out++ = '-';
    value = -value;
  }
  if (std::isinf(value)) return std::strcpy(out, "inf") + 3;
  if (value == 0) return std::strcpy(out, "0.0") + 3;
  // "d.ddde-05": the digits without their point, and the place of the point after the first of them.
  char text[kNumberBytes];
  const char* end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  const auto* e = static_cast<const char*>(std::memchr(text, 'e', static_cast<std::size_t>(end - text)));
  int exponent = 0;
  std::from_chars(e + (e[1] == '+' ? 2 : 1), end, exponent);
  const bool single = e == text + 1;
  const auto count = static_cast<int>(e - text) - (single ? 0 : 1);
  if (!single) std::memmove(text + 1, text + 2, static_cast<std::size_t>(count - 1));
  const auto digits = static_cast<std::size_t>(count);
  if (exponent < -4 || exponent >= 16) {  // 1.5e-05; the exponent is to_chars's own, two digits or three
    *out++ = text[0];
    if (!single) {
      *out++ = '.';
      std::memcpy(out, text + 1, digits - 1);
      out += digits - 1;
    }
    std::memcpy(out, e, static_cast<std::size_t>(end - e));
    return out + (end - e);
  }
  if (exponent < 0) {  // 0.0015
    const auto zeros = static_cast<std::size_t>(1 - exponent);
    std::memcpy(out, "0.000", zeros);
    std::memcpy(out + zeros, text, digits);
    return out + zeros + digits;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits <= whole) {  // 1500.0
    std::memcpy(out, text, digits);
    std::memset(out + digits, '0', whole - digits);
    std::memcpy(out + whole, ".0", 2);
    return out + whole + 2;
  }
  std::memcpy(out, text, whole);  // 15.25
  out[whole] = '.';
  std::memcpy(out + whole + 1, text + whole, digits - whole);
  return out + digits + 1;
}

}  // namespace fleetrun::dataset
