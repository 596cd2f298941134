#include "launcher/logs/line_formatter.h"

#include <algorithm>
#include <iterator>

#include "runtime/base/text.h"

namespace fleetrun::launcher {

void LineFormatter::begin(std::string_view prefix, std::string& out) {
  out.append(prefix);
}

void LineFormatter::add(std::string_view part, std::string& out) {
  if (guarded_)
    text_.add(part, out);
  else
    out.append(part);
}

void LineFormatter::end(std::string& out, std::string_view newline) {
  text_.end(out);
  out.append(newline);
}

namespace {

constexpr char kEscape = '\x1b';
constexpr std::string_view kNoColour = "\x1b[0m";

struct Range {
  char32_t first, last;
};

/// Wide characters of East Asia and emoji take two columns, combining marks none.
constexpr Range kWide[] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
                           {0xf900, 0xfaff}, {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                           {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};
constexpr Range kCombining[] = {{0x300, 0x36f}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}};

template <std::size_t n>
bool is_in(const Range (&ranges)[n], char32_t c) noexcept {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [c](const Range& r) { return c >= r.first && c <= r.last; });
}

std::size_t columns_of(std::string_view character) noexcept {
  auto c = static_cast<char32_t>(static_cast<unsigned char>(character[0]));
  if (character.size() > 1) c &= 0xffu >> (character.size() + 1);
  for (const char byte : character.substr(1)) c = (c << 6) | (static_cast<unsigned char>(byte) & 0x3f);
  return is_in(kCombining, c) ? 0 : is_in(kWide, c) ? 2 : 1;
}

}  // namespace

std::string cut_to_columns(std::string_view line, std::size_t columns) {
  std::string out;
  bool coloured = false;
  for (std::size_t at = 0, used = 0; at < line.size();) {
    std::size_t length = std::max<std::size_t>(utf8_length(line.substr(at)), 1);
    if (line[at] == kEscape) {
      length = std::min(line.find('m', at), line.size() - 1) - at + 1;
      coloured = true;
    } else {
      // A tab goes to the next multiple of eight.
      used += line[at] == '\t' ? 8 - used % 8 : columns_of(line.substr(at, length));
      if (used > columns) break;
    }
    out.append(line.substr(at, length));
    at += length;
  }
  if (coloured) out.append(kNoColour);
  return out;
}

}  // namespace fleetrun::launcher
