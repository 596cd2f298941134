// The seam between deciding and doing: a pod in which processes are started. The real one is fleetrun-init's
// (process_spawner); a test has its own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "launcher/init_protocol.h"
#include "launcher/plan.h"

namespace fleetrun::launcher {

/// What comes back from a pod. Called from the loop, one at a time.
class PodListener {
 public:
  virtual ~PodListener() = default;
  /// contained, started, failed, exited, emptied: in the order in which it happened.
  virtual void on_frame(const Frame& frame) = 0;
  /// The pod is gone without having said that it is empty.
  virtual void on_lost() = 0;
};

class Pod {
 public:
  virtual ~Pod() = default;
  /// `log_fd` and `stdin_fd` stay open as long as the pod lives. `stdin_fd` is -1 for /dev/null.
  virtual void start(std::size_t index, const ProcessSpec& spec, int log_fd, int stdin_fd) = 0;
  /// Sends SIGTERM to the process's group and wakes what is stopped in it.
  virtual void ask_to_stop(std::size_t index) = 0;
  /// Sends SIGKILL to every process's group.
  virtual void kill() = 0;
  /// Kills what is left; `emptied` follows.
  virtual void finish() = 0;
};

}  // namespace fleetrun::launcher
