// Signs of life of a training process for fleetrun's --hang_timeout: a write to FLEETRUN_HEARTBEAT_FD now and
// then. What the descriptor does not take is dropped, so nothing here blocks. The Python package has the same
// for scripts (fleetrun.heartbeat).
#pragma once

#include <atomic>
#include <chrono>

#include "runtime/base/environ.h"

namespace fleetrun::runtime {

class Heartbeat {
 public:
  /// Without the variable, or when its number is not fleetrun's channel (the variable was inherited and the
  /// descriptor was not), nothing is ever written.
  explicit Heartbeat(const Environ& environ);

  bool is_heard() const noexcept { return fd_ >= 0; }

  /// Says that the process lives, unless that was said a moment ago.
  /// Threads: any. Cost: a look at the clock; a write every 50 ms.
  void beat() noexcept;

 private:
  int fd_ = -1;
  std::atomic<std::chrono::steady_clock::rep> due_{0};
};

}  // namespace fleetrun::runtime
