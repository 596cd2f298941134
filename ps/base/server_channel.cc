#include "ps/base/server_channel.h"

namespace fleetrun::ps {

void Endings::ended(bool failed) noexcept {
  // Notified under the lock: the waiter may be gone the moment it is released.
  const std::lock_guard lock(mutex_);
  ++ended_;
  failed_ = failed_ || failed;
  changed_.notify_all();
}

void Endings::wait(std::size_t calls) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failed_ || ended_ >= calls; });
}

bool Endings::wait(std::size_t calls, std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [&] { return failed_ || ended_ >= calls; });
}

std::size_t Endings::wait_for_more(std::size_t seen, std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline, [&] { return ended_ > seen; });
  return ended_;
}

}  // namespace fleetrun::ps
