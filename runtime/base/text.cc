#include "runtime/base/text.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "runtime/base/terminal_text.h"

namespace fleetrun {
namespace {

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

void append_hex(std::string& out, unsigned char byte) {
  constexpr char kHex[] = "0123456789abcdef";
  out.append("\\x").push_back(kHex[byte >> 4]);
  out.push_back(kHex[byte & 15]);
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text.append(separator);
    text.append(parts[i]);
  }
  return text;
}

std::optional<std::int64_t> parse_integer(std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_duration_ms(std::string_view text) noexcept {
  constexpr std::int64_t kLimitMs = std::int64_t{30} * 24 * 3600 * 1000;
  std::int64_t unit_ms = 1000;
  if (text.ends_with("ms")) {
    unit_ms = 1;
    text.remove_suffix(2);
  } else if (text.ends_with("s")) {
    text.remove_suffix(1);
  }
  const std::size_t dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  const std::string_view fraction = dot == std::string_view::npos ? std::string_view() : text.substr(dot + 1);
  if (whole.empty() || (dot != std::string_view::npos && fraction.empty()) || fraction.size() > 9)
    return std::nullopt;
  if (!std::all_of(whole.begin(), whole.end(), is_digit)) return std::nullopt;
  if (!std::all_of(fraction.begin(), fraction.end(), is_digit)) return std::nullopt;
  const auto seconds = parse_integer(whole);
  if (!seconds || *seconds > kLimitMs) return std::nullopt;
  std::int64_t value_ms = *seconds * unit_ms;
  std::int64_t digit_ms = unit_ms;
  for (const char c : fraction) {
    digit_ms /= 10;
    value_ms += (c - '0') * digit_ms;
  }
  if (value_ms > kLimitMs) return std::nullopt;
  return value_ms;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  std::iota(previous.begin(), previous.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
    before.swap(previous);
    previous.swap(current);
  }
  return previous[b.size()];
}

std::optional<std::string> nearest(std::string_view text, std::span<const std::string> candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = text.size() / 3 + 2;  // farther away than this is another word, not a slip
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(text, candidate);
    const bool shares_little = 2 * distance > std::max(text.size(), candidate.size());
    if (distance >= best_distance || shares_little) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

std::string shell_quoted(std::string_view text) {
  constexpr std::string_view kBare =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=@%+";
  if (!text.empty() && text.find_first_not_of(kBare) == std::string_view::npos) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'')
      quoted.append("'\\''");
    else
      quoted.push_back(c);
  }
  quoted.push_back('\'');
  return quoted;
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line.append(line.empty() ? "" : " ").append(shell_quoted(word));
  return line;
}

std::string python_repr(std::string_view text) {
  const char quote =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      out.append("\\n");
    else if (c == '\t')
      out.append("\\t");
    else if (c == '\r')
      out.append("\\r");
    else if (c == '\\' || c == quote)
      out.append(1, '\\').push_back(c);
    else if (byte < 0x20 || byte == 0x7f)
      append_hex(out, byte);
    else
      out.push_back(c);
  }
  out.push_back(quote);
  return out;
}

std::string python_repr(std::span<const std::string> values) {
  std::string out = "[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out.append(", ");
    out.append(python_repr(values[i]));
  }
  return out + "]";
}

std::string printable(std::string_view text, std::size_t limit) {
  std::size_t end = std::min(limit, text.size());
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  std::string out;
  for (std::string_view rest = text.substr(0, end); !rest.empty();) {
    const std::string_view character = rest.substr(0, std::max<std::size_t>(utf8_length(rest), 1));
    // A lone byte of 0x80 to 0x9f is a control to terminals that read no UTF-8.
    const bool lone_c1 = character.size() == 1 && (static_cast<unsigned char>(character[0]) & 0xe0) == 0x80;
    if (lone_c1 || acts_on_terminal(character))
      for (const char c : character) append_hex(out, static_cast<unsigned char>(c));
    else
      out.append(character);
    rest.remove_prefix(character.size());
  }
  if (end < text.size()) out.append("…");
  return out;
}

std::string in_quotes(std::string_view text, std::size_t limit) {
  return "'" + printable(text, limit) + "'";
}

std::size_t utf8_length(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                             : (lead & 0xf0) == 0xe0       ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) > 0x9f) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

}  // namespace fleetrun
