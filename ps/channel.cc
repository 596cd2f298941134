#include "ps/channel.h"

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

}  // namespace fleetrun::ps
