// The words of a command line, read by hand: flags with '-' or '_',
// as --flag=VALUE or --flag VALUE; "--" ends them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fleetrun {

class ArgumentReader {
 public:
  /// `words` is borrowed. `hint` is that of every refusal: where the help is.
  ArgumentReader(const std::vector<std::string>& words, std::string hint)
      : words_(words), hint_(std::move(hint)) {}

  /// Goes to the next word; false after the last one.
  bool next();
  bool is_flag() const noexcept { return is_flag_; }
  /// The word; of a flag its name, with its leading dashes and '_' between its parts.
  const std::string& word() const noexcept { return word_; }
  /// Whether it is this flag, which takes no value. Throws: Error(usage) where it has one.
  bool is_switch(std::string_view name) const;
  /// The value of the flag. Throws: Error(usage) where there is none.
  std::string value();
  /// The value as a whole number from `min` on. Throws: Error(usage) where it is none.
  std::int64_t number(std::int64_t min);
  /// Throws: Error(usage), always.
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  const std::vector<std::string>& words_;
  const std::string hint_;
  std::size_t at_ = 0;
  std::string word_;
  std::optional<std::string> value_;
  bool is_flag_ = false;
  bool is_over_ = false;
};

}  // namespace fleetrun
