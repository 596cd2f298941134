// What is said to a person, in that person's language.
//
// Sentences are English where they are made, in logs, events and JSON; the one who shows them to a person
// translates them then, finished as they are: "port 8000 is in use" is found in the catalogue as "port {n} is
// in use". What the catalogue has not stays English. In it stand for a value:
//
//   {n}         digits, with dots
//   {word}      no blank in it
//   {text}      anything, shown as it is; at the beginning without ": " and "; "
//   {sentence}  the same, translated itself where the catalogue has it
//
// each also with a digit, {n2}, where there are several. Of several entries that fit the one counts that has
// most letters of its own.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/language/language.h"

namespace fleetrun {

class Translator {
 public:
  /// `catalogue`: English and translation in turn, each ended by a zero byte. It has to outlive this.
  explicit Translator(std::string_view catalogue);

  /// Nothing where the catalogue has no such sentence, nor all of its parts between "; ".
  std::optional<std::string> find(std::string_view english) const;

  /// Each line by itself, without the blanks that it begins with; those that quote ("  | ") as they are.
  std::string lines(std::string_view english) const;

 private:
  struct Pattern {
    std::vector<std::string_view> literals;  // one more than there are names
    std::vector<std::string_view> names;
    std::string_view translation;
    std::size_t own = 0;  // bytes of the literals
  };

  static std::optional<Pattern> pattern_of(std::string_view english, std::string_view translation);
  enum class Match { found, not_here, nowhere };

  static Match match(const Pattern& pattern, std::string_view rest, std::vector<std::string_view>& values);
  std::string filled(const Pattern& pattern, const std::vector<std::string_view>& values, int depth) const;
  std::optional<std::string> find(std::string_view english, int depth) const;

  std::map<std::string_view, std::string_view> whole_;
  std::vector<Pattern> patterns_;
};

/// What this program speaks: main() says it once, before anything is shown. English until then.
void speak(Language language);

/// `english` in that language, or as it is.
std::string translated(std::string_view english);

/// The same of several lines, or of a line that is indented.
std::string translated_lines(std::string_view english);

}  // namespace fleetrun
