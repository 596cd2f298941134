#include "ps/durable/checkpointer.h"

#include <utility>

namespace fleetrun::ps {

Checkpointer::Checkpointer(std::chrono::milliseconds interval, std::function<void()> make)
    : interval_(interval), make_(std::move(make)), thread_([this] { run(); }) {}

Checkpointer::~Checkpointer() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Checkpointer::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

void Checkpointer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto is_called = [this] { return ending_ || woken_; };
    if (interval_.count() > 0)
      changed_.wait_for(lock, interval_, is_called);
    else
      changed_.wait(lock, is_called);
    if (ending_) return;
    woken_ = false;
    lock.unlock();
    make_();
    lock.lock();
  }
}

}  // namespace fleetrun::ps
