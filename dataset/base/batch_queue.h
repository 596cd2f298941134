// A bounded queue of batches between one reader and one consumer, which gives used batches back so that their
// memory is filled again.
//
// Threads: one for push() and finish(), one for take(), any for abandon().
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "dataset/base/batch.h"

namespace fleetrun::dataset {

class BatchQueue {
 public:
  explicit BatchQueue(std::size_t limit) : limit_(limit) {}

  /// Waits for space, queues `batch` and leaves a used one in its place. False when the queue was abandoned.
  bool push(Batch& batch) {
    std::unique_lock lock(mutex_);
    space_.wait(lock, [this] { return abandoned_ || full_.size() < limit_; });
    if (abandoned_) return false;
    full_.push_back(std::move(batch));
    if (used_.empty()) {
      batch = Batch();
    } else {
      batch = std::move(used_.back());
      used_.pop_back();
    }
    lock.unlock();
    ready_.notify_one();
    return true;
  }

  /// Nothing more will be pushed.
  void finish() {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    ready_.notify_one();
  }

  /// Waits for a batch and exchanges it with `batch`; false after the last one, and once abandoned.
  bool take(Batch& batch) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return abandoned_ || finished_ || !full_.empty(); });
    if (abandoned_ || full_.empty()) return false;
    std::swap(batch, full_.front());
    used_.push_back(std::move(full_.front()));
    full_.pop_front();
    lock.unlock();
    space_.notify_one();
    return true;
  }

  /// Wakes both sides; what is queued is not delivered any more.
  void abandon() noexcept {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    ready_.notify_all();
    space_.notify_all();
  }

 private:
  const std::size_t limit_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::condition_variable space_;
  std::deque<Batch> full_;
  std::vector<Batch> used_;
  bool finished_ = false;
  bool abandoned_ = false;
};

}  // namespace fleetrun::dataset
