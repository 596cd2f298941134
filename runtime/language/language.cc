#include "runtime/language/language.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <optional>

#include "runtime/base/text.h"

namespace fleetrun {
namespace {

std::string first_set(const Environ& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::string* value = environment.find(name);
    if (value && !value->empty()) return *value;
  }
  return "C";
}

/// "zh_CN.UTF-8@pinyin" → "zh_CN"
std::string without_codeset(const std::string& locale) {
  return locale.substr(0, locale.find_first_of(".@"));
}

bool is_plain(const std::string& locale) {
  const std::string name = without_codeset(locale);
  return name == "C" || name == "POSIX";
}

/// A locale that names no set of characters is taken for one of UTF-8, as terminals are.
bool shows_unicode(const std::string& locale) {
  const std::size_t dot = locale.find('.');
  if (dot == std::string::npos) return !is_plain(locale);
  std::string codeset = locale.substr(dot + 1, locale.find('@') - dot - 1);
  std::erase(codeset, '-');
  std::ranges::transform(codeset, codeset.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return codeset == "utf8";
}

std::optional<Language> language_named(const std::string& locale) {
  const std::string language = locale.substr(0, locale.find_first_of("_.@"));
  if (language == "zh") return Language::chinese;
  if (language == "en" || language == "C") return Language::english;
  return std::nullopt;
}

}  // namespace

Language language_of(const Environ& environment) {
  const std::string locale = first_set(environment, {"LC_ALL", "LC_MESSAGES", "LANG"});
  if (is_plain(locale) || !shows_unicode(first_set(environment, {"LC_ALL", "LC_CTYPE", "LANG"})))
    return Language::english;
  const std::string wanted = environment.value_or("LANGUAGE", "");
  for (const std::string& name : split(wanted.empty() ? locale : wanted, ':')) {
    if (const auto language = language_named(name)) return *language;
  }
  return Language::english;
}

}  // namespace fleetrun
