// The log files of one process, read one after the other: those of its attempts, and within an attempt those
// that were rotated ("workerlog.0.2", "workerlog.0.1", "workerlog.0").
#pragma once

#include <sys/types.h>

#include <deque>
#include <string>

#include "launcher/logs/line_splitter.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

class LogSource {
 public:
  explicit LogSource(std::string prefix) : prefix_(std::move(prefix)) {}

  /// The process writes to `path` now, and what counts begins at `start`.
  void append(const std::string& path, off_t start);

  /// Reads at `offset` of the file that is being read. Returns how much.
  std::size_t read(char* bytes, std::size_t max, off_t offset) const noexcept;

  /// Goes on to the next file, when there is one. To be called at the end of the file,
  /// with nothing unfinished.
  bool advance();
  /// Whether advance() would go on.
  bool has_next() const;
  /// The file was cut to less than what was read of it: reading goes on at its beginning.
  bool restart_if_cut();
  /// The name no longer leads to the file that is being read.
  bool was_replaced() const;

  const std::string& prefix() const noexcept { return prefix_; }
  bool is_open() const noexcept { return static_cast<bool>(file_); }
  int descriptor() const noexcept { return file_.value(); }
  LineSplitter& lines() noexcept { return lines_; }
  const LineSplitter& lines() const noexcept { return lines_; }

 private:
  struct Named {
    std::string path;
    off_t start = 0;
  };
  bool open(const Named& named, const std::string& path);
  std::string successor() const;
  std::string find_successor() const;

  std::string prefix_;
  Named current_;
  std::deque<Named> later_;
  UniqueFd file_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  LineSplitter lines_;
};

/// The offset in the file `path` at which its last `lines` lines begin; looks back `max_bytes` at most.
off_t start_of_last_lines(const std::string& path, std::size_t lines, std::size_t max_bytes);

}  // namespace fleetrun::launcher
