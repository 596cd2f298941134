// The numbers of MultiSlot text, written: ids as digits, floats as Python's str() shows them, so that a native reader and
// one in Python give the same bytes.
//
// Each function writes at `out`, which needs kNumberBytes, and returns the end. Nothing here depends on the locale.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fleetrun::dataset {

/// The longest number: -2.2250738585072014e-308 has 24 bytes; the rest is room for whole words.
inline constexpr std::size_t kNumberBytes = 32;

char* print_unsigned(char* out, std::uint64_t value) noexcept;
char* print_signed(char* out, std::int64_t value) noexcept;

/// The fewest digits that read back as `value`: 0.1, 1e-05, 3.0, 1e+16, nan, inf.
char* print_double(char* out, double value) noexcept;

}  // namespace fleetrun::dataset
