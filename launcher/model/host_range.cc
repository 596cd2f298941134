#include "launcher/model/host_range.h"

#include <algorithm>
#include <cstdint>

#include "runtime/base/defences.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kMaxDigits = 15;

struct Range {
  std::uint64_t first = 0, last = 0;
  std::size_t width = 1;

  std::size_t size() const noexcept { return static_cast<std::size_t>(last - first + 1); }
};

/// Text and then, but for the last part, the ranges of the bracket behind it.
struct Part {
  std::string_view text;
  std::vector<Range> ranges;

  std::size_t size() const noexcept {
    std::size_t count = 0;
    for (const Range& range : ranges) count += range.size();
    return count;
  }
};

[[noreturn]] void refuse(std::string_view word, const std::string& why, std::string hint = {}) {
  throw Error(ErrorKind::config, "'" + printable(word, 80) + "': " + why, std::move(hint));
}

[[noreturn]] void refuse_count(std::string_view word) {
  refuse(word, "these are more than " + std::to_string(kMaxNamedHosts) + " hosts");
}

std::uint64_t read_number(std::string_view word, std::string_view digits) {
  const bool all = std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (digits.empty() || !all || digits.size() > kMaxDigits)
    refuse(word,
           "'" + printable(digits, 40) + "' is not a number of at most " + std::to_string(kMaxDigits) +
               " digits",
           "ranges are written as node[01-16] or node[1-3,7]");
  std::uint64_t number = 0;
  for (const char c : digits) number = number * 10 + static_cast<std::uint64_t>(c - '0');
  return number;
}

Range read_range(std::string_view word, std::string_view text) {
  const std::size_t dash = text.find('-');
  const std::string_view first = text.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : text.substr(dash + 1);
  const Range range = {read_number(word, first), read_number(word, last), first.size()};
  if (range.last < range.first) refuse(word, "the range " + std::string(text) + " begins above its end");
  if (last.size() != first.size() && last.starts_with('0'))
    refuse(word, "the ends of the range " + std::string(text) + " are filled with zeros to different widths");
  if (range.last - range.first >= kMaxNamedHosts) refuse_count(word);
  return range;
}

std::vector<Part> read_parts(std::string_view word) {
  std::vector<Part> parts;
  for (std::string_view rest = word;;) {
    const std::size_t open = rest.find_first_of("[]");
    if (open == std::string_view::npos) {
      parts.push_back({rest, {}});
      return parts;
    }
    if (rest[open] == ']') refuse(word, "a ']' without its '['");
    const std::size_t close = rest.find_first_of("[]", open + 1);
    if (close == std::string_view::npos) refuse(word, "the '[' is not closed");
    if (rest[close] == '[') refuse(word, "a '[' within brackets");
    const std::string_view inside = rest.substr(open + 1, close - open - 1);
    if (inside.empty()) refuse(word, "the brackets are empty");
    Part part = {rest.substr(0, open), {}};
    std::size_t count = 0;
    for (const std::string& range : split(inside, ',')) {
      part.ranges.push_back(read_range(word, range));
      count += part.ranges.back().size();
      if (count > kMaxNamedHosts) refuse_count(word);
    }
    parts.push_back(std::move(part));
    rest.remove_prefix(close + 1);
  }
}

/// Each of `names` with each number of `ranges` behind it.
std::vector<std::string> with_numbers(const std::vector<std::string>& names,
                                      const std::vector<Range>& ranges) {
  std::vector<std::string> longer;
  for (const std::string& name : names) {
    for (const Range& range : ranges) {
      for (std::uint64_t number = range.first; number <= range.last; ++number) {
        const std::string digits = std::to_string(number);
        const std::size_t zeros = range.width > digits.size() ? range.width - digits.size() : 0;
        longer.push_back(name + std::string(zeros, '0') + digits);
      }
    }
  }
  return longer;
}

}  // namespace

std::vector<std::string> expand_range(std::string_view word) {
  const std::vector<Part> parts = read_parts(word);
  std::size_t count = 1;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    count *= parts[i].size();  // both are at most kMaxNamedHosts: no overflow
    if (count > kMaxNamedHosts && defends("counted hosts")) refuse_count(word);
  }
  std::vector<std::string> names = {""};
  for (const Part& part : parts) {
    for (std::string& name : names) name.append(part.text);
    if (!part.ranges.empty()) names = with_numbers(names, part.ranges);
  }
  return names;
}

std::vector<std::string> split_outside_brackets(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') inside = true;
    if (text[i] == ']') inside = false;
    if (text[i] != separator || inside) continue;
    parts.emplace_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

std::vector<std::string> expand_names(std::string_view list) {
  std::vector<std::string> names;
  for (const std::string& word : split_outside_brackets(list, ',')) {
    if (word.empty()) refuse(list, "a name in the list is empty");
    std::vector<std::string> more = expand_range(word);
    if (names.size() + more.size() > kMaxNamedHosts) refuse_count(list);
    std::move(more.begin(), more.end(), std::back_inserter(names));
  }
  return names;
}

}  // namespace fleetrun::launcher
