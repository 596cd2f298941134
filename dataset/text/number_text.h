// The numbers of the MultiSlot text format: ids and floats, read at the speed of memory.
//
// Digits are taken eight at a time from a 64-bit word, so kTextPadding bytes after any text given to the fast
// functions must be readable (their values do not matter). Nothing here depends on the locale or on errno.
//
// An id is an optional sign and digits: what fits int64, or uint64 kept as its int64 bits
// (18446744073709551615 is -1). A float is what strtof() reads in the C locale: decimal digits, '.',
// exponent; the same in hexadecimal (0x10, 0x1.8p3); nan, nan(…), inf, infinity, in any case. Values too near
// 0 become 0; values too large are a fault.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace fleetrun::dataset {

/// Readable bytes that the fast functions need after the text.
inline constexpr std::size_t kTextPadding = 16;

enum class NumberFault { none, not_a_number, out_of_range };

/// Blank, tab, vertical tab, form feed and carriage return separate; a line feed ends the line.
inline bool is_separator(char byte) noexcept {
  return byte == ' ' || (byte >= '\t' && byte <= '\r' && byte != '\n');
}
inline bool ends_token(char byte) noexcept {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static_assert(std::endian::native == std::endian::little, "the first digit must be the lowest byte");

/// The digits of eight bytes: `digits` of them lead, their values are in `values`, first digit lowest.
struct DigitRun {
  std::uint64_t values;
  unsigned digits;
};

inline DigitRun leading_digits(const char* text) noexcept {
  std::uint64_t bytes;
  std::memcpy(&bytes, text, sizeof bytes);
  const std::uint64_t values = bytes ^ 0x3030303030303030;  // '0'..'9' become 0..9, everything else is more
  const std::uint64_t others = ((values + 0x7676767676767676) | values) & 0x8080808080808080;
  return {values, others == 0 ? 8U : static_cast<unsigned>(std::countr_zero(others)) / 8};
}

/// The number that the first `run.digits` (at least 1) digits write.
inline std::uint32_t value_of(DigitRun run) noexcept {
  std::uint64_t values = run.values << (64 - 8 * run.digits);  // zeros in front, garbage out
  values = values * 10 + (values >> 8);                        // pairs
  constexpr std::uint64_t mask = 0x000000FF000000FF;
  constexpr std::uint64_t high_pairs = 100 + (std::uint64_t{1000000} << 32);
  constexpr std::uint64_t low_pairs = 1 + (std::uint64_t{10000} << 32);
  return static_cast<std::uint32_t>(((values & mask) * high_pairs + ((values >> 16) & mask) * low_pairs) >>
                                    32);
}

/// The slow, complete readers of one whole token (no padding needed).
NumberFault read_id(std::string_view token, std::int64_t& value) noexcept;
NumberFault read_float(std::string_view token, float& value) noexcept;
/// Plain digits only; a count that does not fit 64 bits is out of range.
NumberFault read_count(std::string_view token, std::uint64_t& value) noexcept;

/// Reads an id of up to 16 digits that ends before a separator or line feed; the end, or nullptr for anything
/// else (which read_id() then judges).
inline const char* read_short_id(const char* text, std::int64_t& value) noexcept {
  const bool negative = *text == '-';
  text += negative;
  DigitRun run = leading_digits(text);
  if (run.digits == 0) return nullptr;
  std::int64_t number = value_of(run);
  text += run.digits;
  if (run.digits == 8) {
    run = leading_digits(text);
    if (run.digits != 0) {
      constexpr std::int64_t scale[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
      number = number * scale[run.digits] + value_of(run);
      text += run.digits;
    }
  }
  if (!ends_token(*text)) return nullptr;
  value = negative ? -number : number;
  return text;
}

/// read_short_float() without a sign.
inline const char* read_plain_float(const char* text, float& value) noexcept {
  constexpr double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                              1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
  constexpr std::uint64_t scale[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
  unsigned digits = 1;
  unsigned fraction = 0;
  std::uint64_t mantissa = static_cast<unsigned char>(text[0] - '0');
  DigitRun run{};
  if (mantissa <= 9 &&
      text[1] == '.') {  // the usual "0.": where the fraction starts is known without counting
    text += 1;
  } else {
    run = leading_digits(text);
    if (run.digits == 8) return nullptr;
    digits = run.digits;
    mantissa = run.digits == 0 ? 0 : value_of(run);
    text += run.digits;
  }
  if (*text == '.') {
    ++text;
    do {
      run = leading_digits(text);
      if (run.digits == 0) break;
      fraction += run.digits;
      if (digits + fraction > 19) return nullptr;
      mantissa = mantissa * scale[run.digits] + value_of(run);
      text += run.digits;
    } while (run.digits == 8);
    digits += fraction;
  }
  if (digits == 0 || !ends_token(*text)) return nullptr;
  // Mantissa and power of ten are each at most half a unit off (the power not at all), and so is the
  // quotient: it rounds on to the same float as the decimal does unless two units or less part it from the
  // middle between two floats.
  const double quotient = static_cast<double>(mantissa) / power[fraction];
  const std::uint64_t beyond_float = std::bit_cast<std::uint64_t>(quotient) & 0x1FFFFFFF;
  if (beyond_float - (0x10000000 - 2) <= 4) return nullptr;
  value = static_cast<float>(quotient);
  return text;
}

/// Reads a float written as up to 7 digits, '.' and more digits, 19 in all, without exponent, that ends
/// before a separator or line feed, rounded as strtof() rounds; the end, or nullptr for anything else (which
/// read_float() then judges).
inline const char* read_short_float(const char* text, float& value) noexcept {
  if (*text != '-') return read_plain_float(text, value);
  const char* end = read_plain_float(text + 1, value);
  value = -value;
  return end;
}

}  // namespace fleetrun::dataset
