// Small text tools shared by every folder: lists, strict numbers, spelling suggestions, quoting.
//
// Everything here is pure and independent of the locale.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun {

/// "a,b,,c" → {"a","b","","c"}; "" → {}.
std::vector<std::string> split(std::string_view text, char separator);

std::string join(std::span<const std::string> parts, std::string_view separator);

/// A whole number written as plain ASCII digits with an optional leading '-'. Nothing else is a number: no
/// blanks, '+', "0x", exponent, fraction or digits of other scripts. nullopt also when it does not fit.
std::optional<std::int64_t> parse_integer(std::string_view text) noexcept;

/// "30", "0.5", "2s", "500ms": a duration in milliseconds, seconds being the unit when none is written.
/// nullopt for anything else, for negative values, and above 30 days.
std::optional<std::int64_t> parse_duration_ms(std::string_view text) noexcept;

/// Levenshtein distance: single insertions, deletions and replacements, and swaps of neighbours, count 1.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `text`, or nullopt when none is near enough to be what was meant.
std::optional<std::string> nearest(std::string_view text, std::span<const std::string> candidates);

/// `text` as one word of a POSIX shell; left bare where no quoting is needed.
std::string shell_quoted(std::string_view text);
/// Words as a shell reads them back.
std::string shell_words(const std::vector<std::string>& words);

/// `text` as Python's repr() shows a string.
std::string python_repr(std::string_view text);

/// `values` as Python's repr() shows a list of strings.
std::string python_repr(std::span<const std::string> values);

/// `text` made fit for one line of an error message: control bytes become \xNN, and what is longer than
/// `limit` is cut.
std::string printable(std::string_view text, std::size_t limit = 200);
/// That in single quotes.
std::string in_quotes(std::string_view text, std::size_t limit = 200);

/// How many bytes at the beginning of `text` are one character of UTF-8; 0 when they are none.
std::size_t utf8_length(std::string_view text) noexcept;

}  // namespace fleetrun
