// Pipes that were started for the next epoch while this one ends, so that its first batches do not wait for
// programs to start. They fill their pipe and wait.
//
// Threads: any.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <map>
#include <memory>
#include <mutex>

#include "dataset/pipes/byte_source.h"

namespace fleetrun::dataset {

class PipesAhead {
 public:
  /// Starts the processes of file number `index`, if it needs any.
  /// What goes wrong is left to the epoch that reads the file.
  void start(std::size_t index, const ByteSourceOptions& options) noexcept;
  /// The source of file number `index`, if it was started and the file has not changed since; else nullptr.
  std::unique_ptr<ByteSource> take(std::size_t index, const std::string& file);
  /// Ends what nobody has taken.
  void clear() noexcept;

 private:
  /// What a file of this host was when it was opened; nothing of a remote one.
  struct Look {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
    std::time_t seconds = 0;
    long nanoseconds = 0;
    bool operator==(const Look&) const = default;
  };
  struct Pipe {
    Look look;
    std::unique_ptr<ByteSource> source;
  };
  static Look look_at(const std::string& file);

  std::mutex mutex_;
  std::map<std::size_t, Pipe> pipes_;
};

}  // namespace fleetrun::dataset
