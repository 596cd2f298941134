// The thread looks now and then: who asks the disk, for each change, must not have to wake it.
#include "ps/durable/disk_watch.h"

#include <utility>

namespace fleetrun::ps {

DiskWatch::Asking::Asking(DiskWatch* watch) noexcept : watch_(watch) {
  Clock::rep nothing = 0;
  if (watch_ && !watch_->since_.compare_exchange_strong(nothing, Clock::now().time_since_epoch().count()))
    watch_ = nullptr;
}

DiskWatch::Asking::~Asking() {
  if (watch_) watch_->since_ = 0;
}

DiskWatch::DiskWatch(std::chrono::milliseconds patience, Tell tell)
    : patience_(patience), tell_(std::move(tell)), thread_([this] { run(); }) {}

DiskWatch::~DiskWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void DiskWatch::run() {
  Clock::rep told = 0;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, patience_ / 2, [this] { return ending_; })) {
    const Clock::rep since = since_;
    const auto waited_since = [](Clock::rep then) {
      return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch() -
                                                                   Clock::duration(then));
    };
    if (told != 0 && since != told) tell_(waited_since(std::exchange(told, 0)), true);
    if (since == 0 || told != 0 || waited_since(since) < patience_) continue;
    told = since;
    tell_(waited_since(since), false);
  }
}

}  // namespace fleetrun::ps
