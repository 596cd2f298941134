// Shows a growing log file on a terminal or pipe, as it grows, without ever blocking.
//
// The processes write to the file and know nothing of this: a reader that is slow or gone costs them nothing.
// What cannot be written yet stays in the file.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

class LogFollower {
 public:
  virtual ~LogFollower() = default;
  /// Nothing is written to the file any more: calls `on_done` once all of it has been shown, or the reader is
  /// gone, or has taken nothing for a while. Not from within this call.
  virtual void drain(std::function<void()> on_done) = 0;
};

/// Follows `path` from `start` on, to the descriptor `output` (borrowed).
std::unique_ptr<LogFollower> follow_log(boost::asio::io_context& loop, const std::string& path, off_t start,
                                        int output);

}  // namespace fleetrun::launcher
