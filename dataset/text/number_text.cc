// The complete readers: every form, every limit. The fast ones in the header hand over what is not short and
// plain.
#include "dataset/text/number_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace fleetrun::dataset {
namespace {

bool is_digit(char byte) noexcept {
  return byte >= '0' && byte <= '9';
}

/// `word` in lower case.
bool equals_any_case(std::string_view text, std::string_view word) noexcept {
  if (text.size() != word.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((text[i] | 0x20) != word[i]) return false;
  return true;
}

/// Takes a leading sign off; true for '-'.
bool take_sign(std::string_view& token) noexcept {
  const bool negative = token.starts_with('-');
  if (negative || token.starts_with('+')) token.remove_prefix(1);
  return negative;
}

/// How a float's digits are written.
struct Notation {
  std::chars_format format;
  char exponent_mark;       // in lower case
  std::int64_t digit_size;  // what a digit's place is worth, in the exponent's unit
};
constexpr Notation kDecimal = {std::chars_format::general, 'e', 1};
constexpr Notation kHexadecimal = {std::chars_format::hex, 'p', 4};

/// Whether a number that no float can hold is too large (true) or too near 0 (false): the place of its first
/// digit that is not 0, moved by the exponent.
bool is_large(std::string_view number, const Notation& notation) noexcept {
  std::int64_t place = 0;
  bool after_point = false;
  bool counting = false;
  std::size_t i = 0;
  for (; i < number.size() && (number[i] | 0x20) != notation.exponent_mark; ++i) {
    if (number[i] == '.') {
      after_point = true;
    } else if (counting) {
      place += after_point ? 0 : notation.digit_size;
    } else {
      counting = number[i] != '0';
      if (counting && !after_point) place = notation.digit_size;
      if (!counting && after_point) place -= notation.digit_size;
    }
  }
  if (i == number.size()) return place > 0;
  std::string_view exponent = number.substr(i + 1);
  const bool negative = take_sign(exponent);
  std::int64_t moved = 0;
  for (const char digit : exponent)
    if (moved < (std::int64_t{1} << 50)) moved = moved * 10 + (digit - '0');
  return place + (negative ? -moved : moved) > 0;
}

NumberFault read_digits(std::string_view token, const Notation& notation, float& value) noexcept {
  const char* token_end = token.data() + token.size();
  const auto [end, error] = std::from_chars(token.data(), token_end, value, notation.format);
  if (error == std::errc::invalid_argument || end != token_end) return NumberFault::not_a_number;
  if (error == std::errc::result_out_of_range || std::isinf(value)) {
    if (is_large(token, notation)) return NumberFault::out_of_range;
    value = 0;
  }
  return NumberFault::none;
}

/// "nan", and "nan(" letters, digits and underscores ")", which say nothing that is kept.
bool is_nan(std::string_view token) noexcept {
  if (equals_any_case(token, "nan")) return true;
  if (token.size() < 5 || !equals_any_case(token.substr(0, 3), "nan") || token[3] != '(' ||
      token.back() != ')')
    return false;
  const std::string_view inside = token.substr(4, token.size() - 5);
  return std::all_of(inside.begin(), inside.end(), [](char byte) {
    return is_digit(byte) || byte == '_' || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
  });
}

}  // namespace

NumberFault read_count(std::string_view token, std::uint64_t& value) noexcept {
  if (token.empty() || !is_digit(token.front())) return NumberFault::not_a_number;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (end != token.data() + token.size()) return NumberFault::not_a_number;
  return error == std::errc{} ? NumberFault::none : NumberFault::out_of_range;
}

NumberFault read_id(std::string_view token, std::int64_t& value) noexcept {
  const bool negative = take_sign(token);
  std::uint64_t magnitude = 0;
  const NumberFault fault = read_count(token, magnitude);
  if (fault != NumberFault::none) return fault;
  constexpr std::uint64_t lowest = std::uint64_t{1} << 63;
  if (negative && magnitude > lowest) return NumberFault::out_of_range;
  value = static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
  return NumberFault::none;
}

NumberFault read_float(std::string_view token, float& value) noexcept {
  const bool negative = take_sign(token);
  if (token.empty()) return NumberFault::not_a_number;
  float magnitude = 0;
  if (token.starts_with("0x") || token.starts_with("0X")) {
    const std::string_view digits = token.substr(2);
    if (digits.starts_with('-')) return NumberFault::not_a_number;
    const NumberFault fault = read_digits(digits, kHexadecimal, magnitude);
    if (fault != NumberFault::none) return fault;
  } else if (is_digit(token.front()) || token.front() == '.') {
    const NumberFault fault = read_digits(token, kDecimal, magnitude);
    if (fault != NumberFault::none) return fault;
  } else if (is_nan(token)) {
    magnitude = std::numeric_limits<float>::quiet_NaN();
  } else if (equals_any_case(token, "inf") || equals_any_case(token, "infinity")) {
    magnitude = std::numeric_limits<float>::infinity();
  } else {
    return NumberFault::not_a_number;
  }
  value = negative ? -magnitude : magnitude;
  return NumberFault::none;
}

}  // namespace fleetrun::dataset
