#include "runtime/base/environ.h"

#include <unistd.h>

namespace fleetrun {

Environ Environ::of_process() {
  Environ copy;
  if (environ == nullptr) return copy;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    copy.values_.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return copy;
}

const std::string* Environ::find(std::string_view name) const {
  const auto entry = values_.find(name);
  return entry == values_.end() ? nullptr : &entry->second;
}

std::string Environ::value_or(std::string_view name, std::string_view fallback) const {
  const std::string* value = find(name);
  return value ? *value : std::string(fallback);
}

std::vector<std::string> Environ::entries() const {
  std::vector<std::string> texts;
  texts.reserve(values_.size());
  for (const auto& [name, value] : values_) texts.push_back(name + "=" + value);
  return texts;
}

void Environ::erase(std::string_view name) {
  const auto entry = values_.find(name);
  if (entry != values_.end()) values_.erase(entry);
}

}  // namespace fleetrun
