#include "ps/rpc/patience.h"

#include <utility>

namespace fleetrun::ps {

Patience::Patience() : thread_([this] { run(); }) {}

Patience::~Patience() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Patience::after(std::chrono::milliseconds delay, std::function<void()> then) {
  const std::lock_guard lock(mutex_);
  waiting_.emplace(std::chrono::steady_clock::now() + delay, std::move(then));
  changed_.notify_all();
}

void Patience::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (waiting_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto first = waiting_.begin();
    if (std::chrono::steady_clock::now() < first->first) {
      const auto due = first->first;
      changed_.wait_until(lock, due);
      continue;
    }
    const std::function<void()> then = std::move(first->second);
    waiting_.erase(first);
    lock.unlock();
    then();
    lock.lock();
  }
}

}  // namespace fleetrun::ps
