// The lines of one growing log by their numbers, without keeping them: every 256th line's offset is known,
// the lines themselves are read when they are wanted. Log files that are not this user's have no lines.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launcher {

class LogLines {
 public:
  explicit LogLines(std::string path) : path_(std::move(path)) {}

  /// Looks at no more than `budget` new bytes of the file, and takes from it what it has looked at; begins
  /// anew where the file was cut or is another one. False: there are more.
  bool look(std::size_t& budget);

  /// With the last one, whose end may not be written yet.
  std::size_t count() const noexcept { return lines_ + (is_open_line_ ? 1 : 0); }

  /// Calls `take` for lines [first, last) in turn, until it says false. A line longer than 64 KiB is cut.
  void each(std::size_t first, std::size_t last,
            const std::function<bool(std::size_t number, std::string_view line)>& take) const;

 private:
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  off_t looked_ = 0;
  std::size_t lines_ = 0;  // that have ended
  bool is_open_line_ = false;
  std::vector<off_t> marks_{0};  // where lines 0, 256, 512, … begin
};

/// What was written to the log `path` after `offset`, in whole lines, at most `max_bytes`; an end of a line
/// that is missing is waited for, unless the line is longer than that or `is_over`: nobody writes there any
/// more. `offset` moves behind it.
std::vector<std::string> new_lines(const std::string& path, off_t& offset, std::size_t max_bytes,
                                   bool is_over);

/// Opens a regular file of this user's to be read; never through a symbolic link. -1: there is none.
int open_own_log(const std::string& path);

}  // namespace fleetrun::launcher
