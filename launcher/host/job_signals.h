// The signals that a job listens to, from its beginning to the end of this process.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "runtime/base/still_here.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

/// They do not get their defaults back: what comes after the job neither ends this process nor changes its
/// status. See leave_with() for who waits after all.
class JobSignals {
 public:
  /// Calls `heard` on the loop for each signal.
  JobSignals(boost::asio::io_context& loop, std::vector<int> numbers, std::function<void(int number)> heard);
  ~JobSignals();
  JobSignals(const JobSignals&) = delete;
  JobSignals& operator=(const JobSignals&) = delete;

  /// A signal that another process got in the job's name. Whoever signals all of them means one: it counts
  /// unless the same came here within a second, and then not again.
  void hear_also(int number);

  /// They are held back until other JobSignals listen to them.
  void hand_over();

 private:
  struct Set;

  void listen();
  void hear(int number, bool elsewhere);
  void mask(int how) const noexcept;

  const std::vector<int> numbers_;
  const std::function<void(int)> heard_;
  std::unique_ptr<Set> set_;
  std::map<int, std::chrono::steady_clock::time_point> heard_at_[2];  // here, elsewhere
  StillHere still_here_;
};

/// All that has to be kept is written, and `status` is how this process ends. What is left is a courtesy (a
/// farewell, a command of the user's, text for a terminal that takes none), and a signal that comes a second
/// after the job's last does not wait for it.
void leave_with(int status) noexcept;

}  // namespace fleetrun::launcher
