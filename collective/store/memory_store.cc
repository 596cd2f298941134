#include "collective/store/memory_store.h"

#include "runtime/base/error.h"

namespace fleetrun::collective {

void MemoryStore::set(const std::string& name, const std::string& value) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = values_.emplace(name, value);
  if (!is_new && at->second != value)
    throw Error(ErrorKind::config, "the store's " + name + " is " + at->second + " already, not " + value);
  changed_.notify_all();
}

std::string MemoryStore::wait(const std::string& name, Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_until(lock, deadline, [&] { return values_.contains(name); }))
    throw Error(ErrorKind::timeout, "nobody has set the store's " + name);
  return values_.at(name);
}

std::int64_t MemoryStore::add(const std::string& name, std::int64_t amount) {
  const std::lock_guard lock(mutex_);
  return counters_[name] += amount;
}

}  // namespace fleetrun::collective
