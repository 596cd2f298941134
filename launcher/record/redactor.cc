#include "launcher/record/redactor.h"

#include <algorithm>
#include <cctype>

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kShortestSecret = 6;  // a shorter one would hide half of the text
constexpr std::size_t kShortestToken = 16;  // after the beginning of a known shape
constexpr std::string_view kNames[] = {
    "password",   "passwd",     "passphrase",    "secret",     "token",      "apikey",          "accesskey",
    "privatekey", "credential", "authorization", "accountkey", "signingkey", "connectionstring"};
constexpr std::string_view kShapes[] = {"AKIA",        "ASIA",   "ghp_", "gho_", "ghs_", "ghu_",
                                        "github_pat_", "glpat-", "hf_",  "sk-",  "AIza", "xoxb-",
                                        "xoxp-",       "xoxa-",  "npm_", "eyJ"};
constexpr std::size_t kPemHeader = 50;
constexpr std::string_view kPemBegin = "-----BEGIN ", kPemEnd = "-----END ", kPemKey = "PRIVATE KEY";

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
}
bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

/// Without what separates words in it.
std::string folded(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c != '_' && c != '-') text += lower(c);
  }
  return text;
}

/// Numbers and words such as "true" tell nothing: "max_tokens=1024".
bool tells_nothing(std::string_view value) {
  return std::ranges::all_of(
             value, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) || c == '.'; }) ||
         value == "true" || value == "false" || value == "None" || value == "null" ||
         value.starts_with(kHidden);
}

/// Reads a text from its beginning to its end, and writes what may be seen of it.
class Cleaner {
 public:
  explicit Cleaner(std::string_view text) : text_(text) {}

  std::string clean() {
    while (at_ < text_.size()) {
      if (hide_key() || hide_user() || hide_shape() || hide_named()) continue;
      copy(1);
    }
    return std::move(clean_);
  }

 private:
  void copy(std::size_t count) {
    clean_.append(text_.substr(at_, count));
    at_ += count;
  }
  void hide(std::size_t count) {
    clean_ += kHidden;
    at_ += count;
  }
  std::string_view rest() const { return text_.substr(at_); }
  bool at_word() const { return at_ == 0 || !is_word(text_[at_ - 1]); }

  /// A private key in PEM, up to its last line or the end of the text.
  bool hide_key() {
    if (!rest().starts_with(kPemBegin)) return false;
    if (rest().substr(0, kPemHeader).find(kPemKey) == std::string_view::npos) return false;
    const std::size_t end = rest().find(kPemEnd);
    if (end == std::string_view::npos) return hide(rest().size()), true;
    const std::size_t line_end = rest().find_first_of("\n\\\"", end);
    hide(line_end == std::string_view::npos ? rest().size() : line_end);
    return true;
  }

  /// scheme://USER:PASSWORD@host
  bool hide_user() {
    if (!rest().starts_with("://")) return false;
    const std::string_view authority = rest().substr(3, rest().find_first_of("/ \t\n\"'<>?#", 3) - 3);
    const std::size_t user = authority.rfind('@');
    if (user == std::string_view::npos) return false;
    copy(3);
    hide(user);
    return true;
  }

  bool hide_shape() {
    if (!at_word()) return false;
    for (const std::string_view shape : kShapes) {
      if (!rest().starts_with(shape)) continue;
      std::size_t end = shape.size();
      while (end < rest().size() && (is_word(rest()[end]) || rest()[end] == '.')) ++end;
      if (end - shape.size() < kShortestToken) return false;
      hide(end);
      return true;
    }
    return false;
  }

  /// NAME=VALUE, "NAME": "VALUE", NAME: VALUE, --NAME VALUE, and Authorization: Bearer VALUE
  bool hide_named() {
    if (!at_word() || !is_word(rest().front())) return false;
    std::size_t end = 0;
    while (end < rest().size() && is_word(rest()[end])) ++end;
    const std::string_view name = rest().substr(0, end);
    if (!names_a_secret(name)) return copy(end), true;
    const bool is_flag = name.starts_with("--");
    copy(end);
    if (!copy_separator(is_flag)) return true;
    hide_value();
    return true;
  }

  /// What stands between a name and its value, in JSON within text, too; false: no value follows.
  bool copy_separator(bool is_flag) {
    std::size_t end = at_;
    const auto skip = [&](auto is) {
      const std::size_t before = end;
      while (end < text_.size() && is(text_[end])) ++end;
      return end > before;
    };
    skip([](char c) { return c == '"' || c == '\'' || c == '\\'; });
    const bool blank = skip(is_blank);
    const bool sign = end < text_.size() && (text_[end] == '=' || text_[end] == ':');
    if (!sign && !(is_flag && blank)) return false;
    if (sign) ++end;
    skip(is_blank);
    skip([](char c) { return c == '"' || c == '\'' || c == '\\' || c == '('; });
    copy(end - at_);
    return true;
  }

  void hide_value() {
    const std::string_view value = rest().substr(0, rest().find_first_of(" \t\r\n\"'\\,;&)}<>"));
    if (value.empty() || tells_nothing(value)) return;
    const std::string scheme = folded(value);
    if (scheme == "bearer" || scheme == "basic" || scheme == "digest") {
      copy(value.size());
      while (!rest().empty() && is_blank(rest().front())) copy(1);
      return hide_value();
    }
    hide(value.size());
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string clean_;
};

}  // namespace

bool names_a_secret(std::string_view name) {
  const std::string text = folded(name);
  return std::ranges::any_of(kNames,
                             [&](std::string_view part) { return text.find(part) != std::string::npos; });
}

void Redactor::learn(const Environ& environment) {
  for (const auto& [name, value] : environment.values()) {
    // The name of a file is none: its content is.
    if (names_a_secret(name) && !value.starts_with('/')) add(value);
  }
}

void Redactor::learn(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const std::size_t equals = argument.find('=');
    if (!names_a_secret(argument.substr(0, equals))) continue;
    if (equals != std::string_view::npos)
      add(argument.substr(equals + 1));
    else if (argument.starts_with('-') && i + 1 < arguments.size() && !arguments[i + 1].starts_with('-'))
      add(arguments[i + 1]);
  }
}

void Redactor::add(std::string_view secret) {
  if (secret.size() < kShortestSecret || tells_nothing(secret)) return;
  if (std::ranges::find(secrets_, secret) != secrets_.end()) return;
  secrets_.emplace_back(secret);
  std::ranges::sort(secrets_, [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

std::string Redactor::clean(std::string_view text) const {
  std::string known(text);
  for (const std::string& secret : secrets_) {
    for (std::size_t at = 0; (at = known.find(secret, at)) != std::string::npos; at += kHidden.size())
      known.replace(at, secret.size(), kHidden);
  }
  return Cleaner(known).clean();
}

}  // namespace fleetrun::launcher
