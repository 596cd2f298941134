#include "ps/base/background_queue.h"

#include <utility>

namespace fleetrun::ps {

bool is_slow(wire::Method method) noexcept {
  using enum wire::Method;
  return method == save_begin || method == save_freeze || method == save_settle || method == save_text ||
         method == save_part || method == save_commit || method == save_end || method == load_prepare ||
         method == load_commit || method == load_abort;
}

void BackgroundQueue::add(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  changed_.notify_one();
}

void BackgroundQueue::finish() {
  {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void BackgroundQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return finishing_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace fleetrun::ps
