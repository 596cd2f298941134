// Colours are escapes of the form ESC [ digits ; : m. Of UTF-8, well-formed sequences pass (no overlong ones,
// no surrogates, nothing above U+10FFFF), except those of the C1 controls, U+0080 to U+009F.
#include "launcher/logs/line_formatter.h"

#include <algorithm>
#include <iterator>

namespace fleetrun::launcher {
namespace {

constexpr unsigned char kEscape = 0x1b;
constexpr std::size_t kLongestColour = 48;
constexpr std::string_view kNoColour = "\x1b[0m";

bool is_plain(unsigned char byte) noexcept {
  return (byte >= 0x20 && byte < 0x7f) || byte == '\t';
}

bool is_digit(unsigned char byte) noexcept {
  return byte >= '0' && byte <= '9';
}

void append_visible(unsigned char byte, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  if (byte < 0x20 || byte == 0x7f) {
    out.push_back('^');
    out.push_back(static_cast<char>(byte ^ 0x40));
  } else if (byte < 0x80) {
    out.push_back(static_cast<char>(byte));
  } else {
    out.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
  }
}

/// Length of the UTF-8 sequence that `byte` begins; 0: none.
std::size_t sequence_length(unsigned char byte) noexcept {
  if (byte >= 0xc2 && byte <= 0xdf) return 2;
  if (byte >= 0xe0 && byte <= 0xef) return 3;
  if (byte >= 0xf0 && byte <= 0xf4) return 4;
  return 0;
}

bool may_be_second(unsigned char first, unsigned char second) noexcept {
  if (second < 0x80 || second > 0xbf) return false;
  switch (first) {
    case 0xc2:
      return second >= 0xa0;
    case 0xe0:
      return second >= 0xa0;
    case 0xed:
      return second <= 0x9f;
    case 0xf0:
      return second >= 0x90;
    case 0xf4:
      return second <= 0x8f;
    default:
      return true;
  }
}

}  // namespace

void LineFormatter::begin(std::string_view prefix, std::string& out) {
  out.append(prefix);
}

void LineFormatter::add(std::string_view part, std::string& out) {
  if (!guarded_) {
    out.append(part);
    return;
  }
  while (!part.empty()) {
    const auto special =
        held_.empty() ? std::find_if_not(part.begin(), part.end(),
                                         [](char c) { return is_plain(static_cast<unsigned char>(c)); })
                      : part.begin();
    const auto plain = static_cast<std::size_t>(std::distance(part.begin(), special));
    out.append(part.substr(0, plain));
    if (plain == part.size()) return;
    guard(static_cast<unsigned char>(part[plain]), out);
    part.remove_prefix(plain + 1);
  }
}

void LineFormatter::end(std::string& out, std::string_view newline) {
  give_up(out);
  if (coloured_) out.append(kNoColour);
  coloured_ = false;
  out.append(newline);
}

void LineFormatter::guard(unsigned char byte, std::string& out) {
  if (held_.empty())
    start_sequence(byte, out);
  else
    add_to_sequence(byte, out);
}

void LineFormatter::start_sequence(unsigned char byte, std::string& out) {
  wanted_ = sequence_length(byte);
  if (byte == kEscape || wanted_ > 0)
    held_.assign(1, static_cast<char>(byte));
  else if (is_plain(byte))
    out.push_back(static_cast<char>(byte));
  else
    append_visible(byte, out);
}

void LineFormatter::add_to_sequence(unsigned char byte, std::string& out) {
  const bool fits =
      wanted_ == 0 ? (held_.size() == 1 ? byte == '['
                                        : held_.size() < kLongestColour &&
                                              (is_digit(byte) || byte == ';' || byte == ':' || byte == 'm'))
                   : (held_.size() == 1 ? may_be_second(static_cast<unsigned char>(held_[0]), byte)
                                        : byte >= 0x80 && byte <= 0xbf);
  if (!fits) {
    give_up(out);
    start_sequence(byte, out);
    return;
  }
  held_.push_back(static_cast<char>(byte));
  const bool colour = wanted_ == 0 && byte == 'm';
  if (!colour && held_.size() != wanted_) return;
  coloured_ = coloured_ || colour;
  out.append(held_);
  held_.clear();
}

/// What is held will not become whole: it is shown byte by byte.
void LineFormatter::give_up(std::string& out) {
  for (const char byte : held_) append_visible(static_cast<unsigned char>(byte), out);
  held_.clear();
}

namespace {

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
    const auto byte = static_cast<unsigned char>(line[at]);
    std::size_t length = std::max<std::size_t>(sequence_length(byte), 1);
    if (byte == kEscape) {
      length = std::min(line.find('m', at), line.size() - 1) - at + 1;
      coloured = true;
    } else {
      // A tab goes to the next multiple of eight.
      used += byte == '\t' ? 8 - used % 8 : columns_of(line.substr(at, length));
      if (used > columns) break;
    }
    out.append(line.substr(at, length));
    at += length;
  }
  if (coloured) out.append(kNoColour);
  return out;
}

}  // namespace fleetrun::launcher
