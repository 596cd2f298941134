#include <map>
#include <mutex>

#include "runtime/engine/executor.h"

namespace fleetrun::engine {

struct Scope::State {
  mutable std::mutex mutex;
  std::map<std::string, Tensor> tensors;
};

Scope::Scope() : state_(std::make_unique<State>()) {}
Scope::~Scope() = default;

Tensor& Scope::tensor(const std::string& name) {
  const std::lock_guard lock(state_->mutex);
  return state_->tensors[name];
}

Tensor* Scope::find(const std::string& name) noexcept {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->tensors.find(name);
  return found == state_->tensors.end() ? nullptr : &found->second;
}

const Tensor* Scope::find(const std::string& name) const noexcept {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->tensors.find(name);
  return found == state_->tensors.end() ? nullptr : &found->second;
}

std::vector<std::string> Scope::names() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state_->tensors) names.push_back(name);
  return names;
}

}  // namespace fleetrun::engine
