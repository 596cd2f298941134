// The environment as a value. `Environ::of_process()` is the one place of the project that reads the real
// one; everything else takes an Environ, so that tests and remote hosts can have another.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun {

class Environ {
 public:
  Environ() = default;
  Environ(std::initializer_list<std::pair<const std::string, std::string>> values) : values_(values) {}

  /// A copy of this process's environment. An entry without '=' is left out; of a name that is there twice
  /// the first counts.
  static Environ of_process();

  /// The value of `name`; nullptr when it is not set. Valid until the next change.
  const std::string* find(std::string_view name) const;
  /// The value of `name`, or `fallback` when it is not set. An empty value is a value.
  std::string value_or(std::string_view name, std::string_view fallback) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

  void set(std::string name, std::string value) {
    values_.insert_or_assign(std::move(name), std::move(value));
  }
  void erase(std::string_view name);

  /// All of it, by name.
  const std::map<std::string, std::string, std::less<>>& values() const noexcept { return values_; }

  /// "NAME=VALUE" for each, as execve() wants it.
  std::vector<std::string> entries() const;

  bool operator==(const Environ&) const = default;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace fleetrun
