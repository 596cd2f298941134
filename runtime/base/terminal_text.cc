#include "runtime/base/terminal_text.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "runtime/base/defences.h"
#include "runtime/base/text.h"

namespace fleetrun {
namespace {

constexpr unsigned char kEscape = 0x1b;
constexpr std::size_t kLongestEscape = 48, kLongestColours = 256;
constexpr std::string_view kNoColour = "\x1b[0m", kEraseLine = "\r\x1b[K";
/// How lines begin that fleetrun writes to a terminal itself.
constexpr std::string_view kOwnLines[] = {"LAUNCH ", "first failure: ", "最先失败：", "fleetrun: "};

bool is_plain(unsigned char byte) noexcept {
  return (byte >= 0x20 && byte < 0x7f) || byte == '\t';
}

bool is_word(unsigned char byte) noexcept {
  return byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= 'a' && byte <= 'z');
}

/// Bytes of the UTF-8 sequence that `byte` begins; 0: none.
std::size_t sequence_length(unsigned char byte) noexcept {
  return byte < 0xc2 ? 0 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : byte < 0xf5 ? 4 : 0;
}

/// Whether what is held may still become one character, judged by its second byte.
bool may_begin_character(std::string_view held) noexcept {
  const auto first = static_cast<unsigned char>(held[0]), second = static_cast<unsigned char>(held[1]);
  const unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  return second >= least && second <= most;
}

/// Spaces and joiners without a width, between letters that look joined (U+200B to U+200F, U+2060, U+FEFF).
bool has_no_width(std::string_view character) noexcept {
  return (character.starts_with("\xe2\x80") && character[2] >= '\x8b' && character[2] <= '\x8f') ||
         character == "\xe2\x81\xa0" || character == "\xef\xbb\xbf";
}

bool may_become_own_line(std::string_view text) noexcept {
  return std::any_of(std::begin(kOwnLines), std::end(kOwnLines),
                     [text](std::string_view line) { return line.starts_with(text); });
}

bool is_own_line(std::string_view text) noexcept {
  return std::find(std::begin(kOwnLines), std::end(kOwnLines), text) != std::end(kOwnLines);
}

}  // namespace

bool acts_on_terminal(std::string_view character) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
  if (character.size() == 2) return byte(0) == 0xc2 && byte(1) < 0xa0;
  if (character.size() != 3 || byte(0) != 0xe2) return false;
  return (byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae) ||
         (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9);
}

void TerminalText::add(std::string_view part, std::string& out) {
  for (const char byte : part) take(static_cast<unsigned char>(byte), out);
}

void TerminalText::pause(std::string& out) {
  if (std::exchange(is_coloured_, false)) out.append(kNoColour);
}

void TerminalText::end(std::string& out) {
  give_up(out);
  show_candidate(out);
  pause(out);
  colour_.clear();
  returns_ = after_word_ = false;
}

void TerminalText::take(unsigned char byte, std::string& out) {
  if (held_.empty())
    start_sequence(byte, out);
  else
    add_to_sequence(byte, out);
}

void TerminalText::start_sequence(unsigned char byte, std::string& out) {
  wanted_ = sequence_length(byte);
  const char character = static_cast<char>(byte);
  if (byte == kEscape || wanted_ > 0)
    held_.assign(1, character);
  else if (is_plain(byte))
    show({&character, 1}, out);
  else if (is_stream_ && byte == '\n')
    end_line(out);
  else if (is_stream_ && byte == '\r')
    returns_ = true;
  else
    show_visible(byte, out);
}

void TerminalText::add_to_sequence(unsigned char byte, std::string& out) {
  held_.push_back(static_cast<char>(byte));
  bool fits = byte >= 0x80 && byte <= 0xbf;
  if (wanted_ > 0) {
    fits = fits && (held_.size() != 2 || may_begin_character(held_));
  } else if (held_.size() == 2) {
    fits = byte == '[';
  } else {
    const bool ends = byte == 'm' || byte == 'K';
    if (ends) return end_escape(byte, out);
    fits = held_.size() <= kLongestEscape && ((byte >= '0' && byte <= '9') || byte == ';' || byte == ':');
  }
  if (!fits) {
    held_.pop_back();
    give_up(out);
    return start_sequence(byte, out);
  }
  if (held_.size() != wanted_) return;
  const std::string character = std::exchange(held_, {});
  if (!acts_on_terminal(character)) return show(character, out);
  for (const char part : character) show_visible(static_cast<unsigned char>(part), out);
}

/// "0" and nothing switch all colours off; what is more than a terminal can have at once is forgotten.
void TerminalText::end_escape(unsigned char last, std::string& out) {
  const std::string escape = std::exchange(held_, {});
  if (last != 'm') return;
  const bool none = escape == kNoColour || escape == "\x1b[m";
  if (none || colour_.size() + escape.size() > kLongestColours) colour_.clear();
  if (!none) colour_.append(escape);
  if (!candidate_.empty()) {
    recolours_ = true;
    return;
  }
  out.append(escape);
  is_coloured_ = !none;
}

/// What is held will not become whole: it is shown byte by byte.
void TerminalText::give_up(std::string& out) {
  for (const char byte : std::exchange(held_, {})) show_visible(static_cast<unsigned char>(byte), out);
}

void TerminalText::show_visible(unsigned char byte, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  const char caret[] = {'^', static_cast<char>(byte ^ 0x40)};
  const char hex[] = {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  if (is_plain(byte) || !defends("filtered terminals"))
    return show({reinterpret_cast<const char*>(&byte), 1}, out);
  for (const char& shown : byte < 0x80 ? std::string_view(caret, 2) : std::string_view(hex, 4))
    show({&shown, 1}, out);
}

void TerminalText::show(std::string_view character, std::string& out) {
  if (std::exchange(returns_, false)) {
    show_candidate(out);
    out.append(kEraseLine);
    after_word_ = false;
  }
  if (!mark_.empty() && defends("marked lines") && may_be_own(character, out)) return;
  if (!is_coloured_ && !colour_.empty()) {
    is_coloured_ = true;
    out.append(colour_);
  }
  out.append(character);
}

/// Holds `character` where it and what is held may become a line of fleetrun's, or is not seen between them.
bool TerminalText::may_be_own(std::string_view character, std::string& out) {
  if (has_no_width(character)) return !candidate_.empty();
  if (candidate_.empty() && after_word_) {
    after_word_ = is_word(static_cast<unsigned char>(character.back()));
    return false;
  }
  candidate_.append(character);
  if (!may_become_own_line(candidate_)) {
    const bool was_alone = candidate_.size() == character.size();
    candidate_.resize(candidate_.size() - character.size());
    show_candidate(out);
    if (!was_alone) return may_be_own(character, out);
    after_word_ = is_word(static_cast<unsigned char>(character.back()));
    return false;
  }
  if (is_own_line(candidate_)) {
    pause(out);
    out.append(mark_);
    show_candidate(out);
  }
  return true;
}

/// In the colour that held where they began.
void TerminalText::show_candidate(std::string& out) {
  if (!candidate_.empty()) after_word_ = is_word(static_cast<unsigned char>(candidate_.back()));
  out.append(std::exchange(candidate_, {}));
  if (std::exchange(recolours_, false)) pause(out);
}

void TerminalText::end_line(std::string& out) {
  show_candidate(out);
  pause(out);
  returns_ = after_word_ = false;
  out.push_back('\n');
}

std::string terminal_text(std::string_view text, std::string_view mark) {
  TerminalText lines(TerminalText::Mark{std::string(mark)});
  std::string out;
  lines.add(text, out);
  lines.end(out);
  return out;
}

std::string text_for(int fd, std::string_view text) {
  return ::isatty(fd) == 1 ? terminal_text(text) : std::string(text);
}

}  // namespace fleetrun
