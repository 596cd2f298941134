// What a server tells its standby: the records of its log, in the order in which they were appended, and who
// waits until the standby has them. Closed, it takes nothing, and nobody waits.
//
//   closed -- open() --> open: records are kept, answers do not wait for them
//          -- guard() -> guarded: an answer waits until the standby has all that was appended before it
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "ps/base/bytes.h"
#include "ps/durable/write_log.h"

namespace fleetrun::ps {

/// Records as they travel: each {kind u32, 0 u32, length u64} and its payload, filled up to 8 bytes.
struct LogBatch {
  std::uint64_t first = 0;  // the number of its first record, from 0
  std::uint64_t records = 0;
  Bytes bytes = {};
};
/// Calls `take` with each record. Throws: Error(data) for bytes that are none.
void read_batch(Reader in, std::uint64_t records, const std::function<void(LogRecord&)>& take);

/// Threads: all calls may be made from several threads at once.
class LogFeed {
 public:
  void open();
  void guard();
  /// Who waits is called on this thread.
  void close();
  bool is_guarded() const;
  /// Whether the standby has had all that was appended before it was guarded, and each answer since.
  bool is_followed() const;

  void append(std::uint32_t kind, const BytePieces& payload);
  /// Calls `then` at once, or from the thread that has heard of the standby.
  void when_safe(std::function<void()> then);

  /// What has been appended since the last call. Waits for that until `patience` is over or wake() is called;
  /// a batch without records then.
  LogBatch take(std::chrono::milliseconds patience);
  void wake();
  /// The standby has all records before this one.
  void reached(std::uint64_t record);

 private:
  enum class State { closed, open, guarded };
  void fresh();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::closed;
  bool is_followed_ = false;
  bool woken_ = false;
  LogBatch next_;
  std::uint64_t reached_ = 0;
  std::deque<std::pair<std::uint64_t, std::function<void()>>> waiting_;  // for all records before a number
};

}  // namespace fleetrun::ps
