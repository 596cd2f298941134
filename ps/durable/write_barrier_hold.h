// A server's write barrier, frozen for a cut: it opens when this goes, and by itself when whoever froze it
// does not come back in time, so that no trainer waits for a saver that has died.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "ps/durable/write_barrier.h"

namespace fleetrun::ps {

/// Threads: one at a time.
class WriteBarrierHold {
 public:
  /// Freezes; waits while another cut holds the write barrier. `write_barrier` outlives this.
  WriteBarrierHold(WriteBarrier& write_barrier, std::chrono::milliseconds max);
  ~WriteBarrierHold();
  WriteBarrierHold(const WriteBarrierHold&) = delete;
  WriteBarrierHold& operator=(const WriteBarrierHold&) = delete;

  /// How far each client's changes had come.
  const WriteBarrier::Sequences& sequences() const noexcept { return sequences_; }
  /// As WriteBarrier::settle(). Throws: Error(timeout), also when the write barrier has opened by itself.
  void settle(const WriteBarrier::Sequences& upto, std::chrono::milliseconds patience);
  /// Begins the cut: calls `begin` while nothing changes, then opens the write barrier.
  /// Throws: Error(timeout) when it has opened by itself.
  template <class Begin>
  auto cut(Begin begin) {
    const std::unique_lock lock(mutex_);
    require_held();
    auto out = begin();
    open();
    return out;
  }

 private:
  void require_held() const;
  void open();

  WriteBarrier& write_barrier_;
  WriteBarrier::Sequences sequences_;
  std::mutex mutex_;  // guards held_
  std::condition_variable_any changed_;
  bool held_ = true;
  std::jthread watch_;
};

}  // namespace fleetrun::ps
