#include "runtime/language/translator.h"

#include <algorithm>
#include <memory>

#include "runtime/language/chinese_catalogue.h"

namespace fleetrun {
namespace {

constexpr int kDeepest = 4;                // sentences within sentences
constexpr std::size_t kLongest = 4096;     // what is longer is no sentence of ours
constexpr std::string_view kQuote = "| ";  // of a log, on the failure screen

std::string_view kind_of(std::string_view name) noexcept {
  return !name.empty() && name.back() >= '0' && name.back() <= '9' ? name.substr(0, name.size() - 1) : name;
}

bool is_name(std::string_view name) noexcept {
  constexpr std::string_view kKinds[] = {"n", "word", "text", "sentence"};
  return std::ranges::find(kKinds, kind_of(name)) != std::end(kKinds);
}

/// Whether the last byte of `value` may be one of its kind. What begins a sentence ends before what is a
/// sentence of its own.
bool may_go_on(std::string_view kind, std::string_view value, bool is_first) noexcept {
  const char byte = value.back();
  if (kind == "n") return (byte >= '0' && byte <= '9') || byte == '.';
  if (kind == "word") return byte != ' ';
  return !is_first || !(value.ends_with("; ") || value.ends_with(": "));
}

/// Where the next "{name}" of `text` is: its place and its name; nothing where there is none.
std::optional<std::pair<std::size_t, std::string_view>> next_name(std::string_view text) noexcept {
  for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    const std::size_t end = text.find('}', at);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view name = text.substr(at + 1, end - at - 1);
    if (is_name(name)) return {{at, name}};
  }
  return std::nullopt;
}

std::string_view take_until(char end, std::string_view& text) noexcept {
  const std::size_t length = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return taken;
}

/// Of this program; nullptr: it speaks English.
std::unique_ptr<const Translator> own_translator;

}  // namespace

Translator::Translator(std::string_view catalogue) {
  while (!catalogue.empty()) {
    const std::string_view english = take_until('\0', catalogue), translation = take_until('\0', catalogue);
    if (auto pattern = pattern_of(english, translation))
      patterns_.push_back(std::move(*pattern));
    else
      whole_.emplace(english, translation);
  }
  std::ranges::stable_sort(patterns_, std::ranges::greater(), &Pattern::own);
}

std::optional<Translator::Pattern> Translator::pattern_of(std::string_view english,
                                                          std::string_view translation) {
  Pattern pattern;
  pattern.translation = translation;
  while (const auto name = next_name(english)) {
    pattern.literals.push_back(english.substr(0, name->first));
    pattern.names.push_back(name->second);
    english.remove_prefix(name->first + name->second.size() + 2);
  }
  if (pattern.names.empty()) return std::nullopt;
  pattern.literals.push_back(english);
  for (const std::string_view literal : pattern.literals) pattern.own += literal.size();
  return pattern;
}

/// `values` has those that are found already. Each is as short as it can be.
Translator::Match Translator::match(const Pattern& pattern, std::string_view rest,
                                    std::vector<std::string_view>& values) {
  const std::string_view literal = pattern.literals[values.size()];
  if (!rest.starts_with(literal)) return Match::not_here;
  rest.remove_prefix(literal.size());
  if (values.size() == pattern.names.size()) return rest.empty() ? Match::found : Match::not_here;
  const std::string_view kind = kind_of(pattern.names[values.size()]);
  const bool is_first = values.empty() && literal.empty();
  for (std::size_t length = 1; length <= rest.size(); ++length) {
    if (!may_go_on(kind, rest.substr(0, length), is_first)) return Match::not_here;
    values.push_back(rest.substr(0, length));
    const Match match_of_rest = match(pattern, rest.substr(length), values);
    if (match_of_rest != Match::not_here) return match_of_rest;
    values.pop_back();
  }
  // It took all that follows: beginning later it would find no more.
  return Match::nowhere;
}

std::string Translator::filled(const Pattern& pattern, const std::vector<std::string_view>& values,
                               int depth) const {
  std::string text;
  std::string_view rest = pattern.translation;
  while (const auto name = next_name(rest)) {
    text.append(rest.substr(0, name->first));
    rest.remove_prefix(name->first + name->second.size() + 2);
    const auto place = std::ranges::find(pattern.names, name->second) - pattern.names.begin();
    if (place == std::ssize(pattern.names)) continue;
    const std::string_view value = values[static_cast<std::size_t>(place)];
    const bool is_sentence = kind_of(name->second) == "sentence";
    text.append((is_sentence ? find(value, depth + 1) : std::nullopt).value_or(std::string(value)));
  }
  return text.append(rest);
}

std::optional<std::string> Translator::find(std::string_view english) const {
  return find(english, 0);
}

std::optional<std::string> Translator::find(std::string_view english, int depth) const {
  if (const auto found = whole_.find(english); found != whole_.end()) return std::string(found->second);
  if (depth > kDeepest || english.size() > kLongest) return std::nullopt;
  for (const Pattern& pattern : patterns_) {
    std::vector<std::string_view> values;
    if (match(pattern, english, values) != Match::found) continue;
    if (std::string text = filled(pattern, values, depth); text != english) return text;
  }
  const std::size_t cut = english.find("; ");
  if (cut == std::string_view::npos) return std::nullopt;
  const auto first = find(english.substr(0, cut), depth + 1);
  const auto others = first ? find(english.substr(cut + 2), depth) : std::nullopt;
  return others ? std::optional<std::string>(*first + "；" + *others) : std::nullopt;
}

std::string Translator::lines(std::string_view english) const {
  std::string text;
  while (!english.empty()) {
    const bool has_end = english.find('\n') != std::string_view::npos;
    std::string_view line = take_until('\n', english);
    const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
    text.append(blanks, ' ');
    line.remove_prefix(blanks);
    text.append((line.starts_with(kQuote) ? std::nullopt : find(line)).value_or(std::string(line)));
    if (has_end) text.push_back('\n');
  }
  return text;
}

void speak(Language language) {
  own_translator =
      language == Language::chinese ? std::make_unique<const Translator>(chinese_catalogue()) : nullptr;
}

std::string translated(std::string_view english) {
  return (own_translator ? own_translator->find(english) : std::nullopt).value_or(std::string(english));
}

std::string translated_lines(std::string_view english) {
  return own_translator ? own_translator->lines(english) : std::string(english);
}

}  // namespace fleetrun
