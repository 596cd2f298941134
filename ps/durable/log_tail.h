// A log that another process still appends to, read as it grows. Nothing of it is changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ps/durable/write_log.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::ps {

/// Threads: one at a time.
class LogTail {
 public:
  /// From the beginning of the segment `first` on.
  LogTail(std::string directory, std::uint64_t first);

  /// Calls `take` with each record that is whole by now and was not read before. Returns how many there were.
  /// Throws: Error(data) naming the file where a segment ends within a record and another follows it, or does
  /// not begin as one; Error(host) where one cannot be read.
  std::uint64_t read(const std::function<void(LogRecord&)>& take);
  /// Where it is.
  std::uint64_t segment() const noexcept { return segment_; }

 private:
  bool open_segment();
  bool read_more();
  std::uint64_t take_whole(const std::function<void(LogRecord&)>& take);

  std::string directory_;
  std::uint64_t segment_;
  std::string path_;
  UniqueFd file_;
  std::vector<std::byte> bytes_;  // read, and not taken yet
  std::uint64_t at_ = 0;          // where they begin in the segment
};

}  // namespace fleetrun::ps
