// Eight digits at a time in one 64-bit word; the digits of a double are those of std::to_chars, moved to
// where Python's repr() has its point and its exponent.
#include "dataset/text/number_print.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace fleetrun::dataset {
namespace {

constexpr DigitTables make_digit_tables() {
  DigitTables tables;
  for (std::uint32_t number = 0; number < 1000; ++number) {
    const std::uint32_t digits[] = {number / 100 + '0', number / 10 % 10 + '0', number % 10 + '0'};
    const std::uint32_t zeros = number >= 100 ? 0 : number >= 10 ? 1 : 2;
    for (std::uint32_t i = 0; i < 3; ++i) {
      tables.all[number] |= digits[i] << (8 * i);
      if (i >= zeros) tables.short_ones[number] |= digits[i] << (8 * (i - zeros));
    }
    tables.short_ones[number] |= (3 - zeros) << 24;
  }
  return tables;
}

char* print_eight(char* out, std::uint32_t number) noexcept {
  const std::uint64_t text = eight_digits(number) | 0x3030303030303030;
  std::memcpy(out, &text, 8);
  return out + 8;
}

}  // namespace

constinit const DigitTables kDigitTables = make_digit_tables();

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
