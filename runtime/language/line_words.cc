#include "runtime/language/line_words.h"

#include <algorithm>

namespace fleetrun {
namespace {

constexpr std::string_view kOpening[] = {"（", "《", "「", "【"};
constexpr std::string_view kClosing[] = {"，", "。", "；", "：", "、", "）", "》", "」", "】", "！", "？"};

bool is_continuation(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

std::string_view first_character(std::string_view text) noexcept {
  std::size_t length = 1;
  while (length < text.size() && is_continuation(text[length])) ++length;
  return text.substr(0, length);
}

/// From U+3000 to U+9FFF, and the marks of full width from U+FF00.
bool is_chinese(std::string_view character) noexcept {
  const auto lead = static_cast<unsigned char>(character[0]);
  return character.size() == 3 && ((lead >= 0xe3 && lead <= 0xe9) || lead == 0xef);
}

bool may_end_between(std::string_view before, std::string_view after) noexcept {
  return (is_chinese(before) || is_chinese(after)) &&
         std::ranges::find(kOpening, before) == std::end(kOpening) &&
         std::ranges::find(kClosing, after) == std::end(kClosing);
}

}  // namespace

std::vector<LineWord> line_words(std::string_view text) {
  std::vector<LineWord> words;
  bool after_blank = true;
  std::string_view before;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view character = first_character(text.substr(at));
    if (character == " ") {
      after_blank = true;
    } else if (after_blank || may_end_between(before, character)) {
      words.push_back({text.substr(at, character.size()), after_blank});
      after_blank = false;
    } else {
      std::string_view& word = words.back().text;
      word = {word.data(), word.size() + character.size()};
    }
    before = character;
    at += character.size();
  }
  return words;
}

}  // namespace fleetrun
