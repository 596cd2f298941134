// YAML line by line, so that comments stand where they are needed. Every text that comes from the user is
// quoted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launcher {

/// `text` as a YAML string in double quotes; everything but plain ASCII is escaped.
/// Throws: Error(usage) where it is not UTF-8.
std::string yaml_quoted(std::string_view text);

/// For a comment: scripts other than Latin have line breaks of their own, which would end it.
std::string yaml_comment(std::string_view text);

class Yaml {
 public:
  void line(int indent, std::string_view text) {
    text_.append(2 * static_cast<std::size_t>(indent), ' ').append(text).append("\n");
  }
  /// `key` is ours, `value` may be anybody's.
  void field(int indent, std::string_view key, std::string_view value) {
    line(indent, std::string(key) + ": " + yaml_quoted(value));
  }
  void number(int indent, std::string_view key, long long value) {
    line(indent, std::string(key) + ": " + std::to_string(value));
  }
  void comment(int indent, std::string_view text) { line(indent, "# " + std::string(text)); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace fleetrun::launcher
