// What a server has done since its last checkpoint: records in files that are only ever appended to.
//
//   DIRECTORY/log-<segment, 16 hex digits>
//   segment  "FLPSLOG1" | segment u64 | record...
//   record   mark u32 | length u32 | kind u32 | crc32c u32 | durable u64 | payload
//   the first record of a segment that follows another: ps/durable/log_format.h, Follows
//
// The checksum covers the segment, where the record begins, and everything of it but the mark and itself, so
// that a record is none at any other place. `durable` is how far the segment was safe when the record was
// written: what is unreadable before that was lost from a disk, and is an error; what is unreadable after it
// was never answered, and is cut off.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "ps/base/durability.h"
#include "ps/base/message.h"
#include "ps/durable/disk_watch.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::ps {

using BytePieces = std::vector<std::span<const std::byte>>;

/// Threads: all calls may be made from several threads at once.
class WriteLog {
 public:
  /// Begins `segment`; with LogSync::power durably, and what there is of the one before it is safe. `broken`
  /// is called, once, when the disk has failed to keep what it was given: what waits for it is then never
  /// answered. `watch`, which outlives this, sees what the disk is asked for while others wait for that.
  /// Throws: Error(host) naming the file.
  WriteLog(std::string directory, std::uint64_t segment, LogSync sync,
           std::function<void(const Error&)> broken = {}, DiskWatch* watch = nullptr);
  ~WriteLog();
  WriteLog(const WriteLog&) = delete;
  WriteLog& operator=(const WriteLog&) = delete;

  /// Throws: Error(host) when it cannot be written; nothing of it is in the log then.
  void append(std::uint32_t kind, const BytePieces& payload);
  /// Calls `then` when all that has been appended is as safe as LogSync says:
  /// at once, or from another thread.
  void when_safe(std::function<void()> then);
  /// Nobody hears an answer any more: what waits, and what is still to wait, is called without being safe.
  void abandon();
  /// What is appended from now on goes to a new segment, whose number is returned. With LogSync::process
  /// nothing waits for the disk here.
  std::uint64_t rotate();
  /// What rotate() has begun, and all before it, is safe from the end of the host after this.
  void sync_begun();
  /// Nothing is appended any more, and another log goes on after this one: what is there is made as safe as
  /// rotate() makes it.
  void finish();
  /// Of this segment.
  std::uint64_t bytes() const;

 private:
  void begin_segment(std::uint64_t segment, std::uint64_t before);
  void write(std::vector<std::span<const std::byte>> pieces, std::uint64_t size);
  void sync_file();
  /// Throws: Error(host), which `broken` gets, too.
  void break_off(const char* call, int error);
  void run();

  std::string directory_;
  LogSync sync_;
  std::function<void(const Error&)> broken_;
  DiskWatch* watch_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string path_;
  std::shared_ptr<UniqueFd> file_;    // shared with the thread that is syncing it
  std::shared_ptr<UniqueFd> before_;  // the segment before it, not synced yet
  std::uint64_t segment_ = 0;
  std::uint64_t size_ = 0;     // of the segment
  std::uint64_t durable_ = 0;  // of it, synced
  bool is_broken_ = false;
  bool is_abandoned_ = false;
  bool ending_ = false;
  std::vector<std::function<void()>> waiting_;
  std::thread thread_;  // with LogSync::power
};

struct LogRecord {
  std::uint32_t kind = 0;
  Reader payload;
};

struct ReplayedLog {
  std::uint64_t next_segment = 0;
  std::uint64_t records = 0;
  /// Of the last segment, cut off because they were never answered.
  std::uint64_t cut_off = 0;
};

/// Calls `take` with each record of the segments from `first` on, in order, and cuts off what the last one
/// has unanswered. No segment is not a record. Throws: Error(data) naming the file
/// and the byte where records are missing or damaged.
ReplayedLog replay_log(const std::string& directory, std::uint64_t first,
                       const std::function<void(LogRecord&)>& take);
/// Removes the segments before `first`.
void remove_log_before(const std::string& directory, std::uint64_t first);

std::string log_path(const std::string& directory, std::uint64_t segment);

}  // namespace fleetrun::ps
