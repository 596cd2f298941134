// fleetrun's side of --log_through: starts fleetrun-log,
// gives each process a pipe to it instead of its file, and hears what was lost.
//
// The ends that are read from stay open here too, so that a fleetrun-log that is killed costs the processes
// nothing: it is started again and goes on with the same pipes. One thread, that of the loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "launcher/log_writer/log_writer.h"
#include "launcher/logs/log_files.h"
#include "launcher/model/plan.h"
#include "runtime/base/unique_fd.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

struct LogThroughSettings {
  std::string program;  // the path of fleetrun-log
  LogLimits limits;
  /// Once per log, when it begins to lose what a process writes: `error` says why. Rotated files that were
  /// removed to keep to the cap have no error.
  std::function<void(std::size_t index, std::uint64_t bytes, int error)> on_lost;
};

class LogThrough {
 public:
  virtual ~LogThrough() = default;
  /// The end of a pipe that process `index` writes to instead of `log`.
  /// Throws: Error(spawn) when there are no descriptors left.
  virtual UniqueFd open(std::size_t index, const LogFile& log) = 0;
  /// Waits until what has been written to the pipes so far is in the files:
  /// before a log's last lines are read.
  virtual void settle(std::chrono::milliseconds max) = 0;
  /// settle(), and the end of what process `index` wrote and its log had no room for.
  virtual std::string last_words(std::size_t index, std::chrono::milliseconds max) = 0;
  /// No process lives any more: calls `on_done` when everything is in the files. Not from within this call.
  virtual void finish(std::function<void()> on_done) = 0;
};

/// Starts fleetrun-log. `plan` outlives it. Throws: Error(spawn) when that is not possible.
std::unique_ptr<LogThrough> log_through(boost::asio::io_context& loop, const Plan& plan,
                                        LogThroughSettings settings);

/// fleetrun-log beside fleetrun-init. Throws: Error(spawn) when it is not there.
std::string find_log_program(const std::string& init_program);

}  // namespace fleetrun::launcher
