// Writes one log with a cap: what stands between a process and its file when --log_through is given.
//
// At the cap the file is rotated: workerlog.0 becomes workerlog.0.1, what was that becomes workerlog.0.2, and
// so on; the oldest beyond `keep` is removed. Files end with a line where a line fits into one. A file that
// cannot be written (full disk, deleted directory, faulty device) never holds the process up: its output is
// dropped and counted, and when the file can be written again it says so in a line of its own. A writer that
// was killed within a rotation is followed by one that loses nothing.
//
// Nothing here throws but `at_step`. One thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

/// LOG_DIR/POD/ATTEMPT/NAME, and its other names in LOG_DIR.
struct LogPlace {
  std::string log_dir, pod, attempt, name;
  std::vector<std::string> other_names;
};

struct LogLimits {
  std::uint64_t cap = 0;  // bytes of one file; 0: none
  int keep = 5;           // rotated files beside it
};

class LogWriter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kKeptBytes = 16 * 1024;

  /// `at_step` is told each step of a rotation before it is done.
  LogWriter(LogPlace place, LogLimits limits, std::function<void(std::string_view)> at_step = {});

  void write(std::string_view bytes, Time now);
  /// No more comes: says what was dropped, if that is possible now.
  void finish(Time now) noexcept;

  std::uint64_t dropped() const noexcept { return dropped_; }
  std::uint64_t removed() const noexcept { return removed_; }  // bytes of rotated files
  /// The end of what was dropped and has not been told in the file, at most kKeptBytes.
  const std::string& lost() const noexcept { return lost_; }
  /// errno of the last failure; 0: none.
  int error() const noexcept { return error_; }

 private:
  bool prepare(Time now);
  bool open_file();
  bool open_directory();
  bool was_deleted(Time now);
  bool write_some(std::string_view& bytes);
  std::size_t fitting(std::string_view bytes) const noexcept;
  bool rotate();
  bool make_room();
  void link_names(ino_t before) noexcept;
  bool say_what_was_dropped() noexcept;
  void fail(int error, Time now) noexcept;
  void drop(std::string_view bytes) noexcept;
  void step(std::string_view name) const;
  std::string part(int number) const;

  LogPlace place_;
  LogLimits limits_;
  std::function<void(std::string_view)> at_step_;
  UniqueFd top_, directory_, file_;
  ino_t inode_ = 0;
  std::uint64_t size_ = 0, dropped_ = 0, untold_ = 0, removed_ = 0;
  bool line_is_open_ = false;  // the file does not end with a newline
  std::string lost_;
  int error_ = 0;
  Time retry_at_{}, looked_at_{};
  std::chrono::milliseconds pause_{};
};

}  // namespace fleetrun::launcher
