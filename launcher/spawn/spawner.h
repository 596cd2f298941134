// The seam between deciding and doing: a pod in which processes are started. The real one is fleetrun-init's
// (process_spawner); a test has its own.
#pragma once

#include <string>
#include <vector>

#include "launcher/init/init_protocol.h"
#include "launcher/model/plan.h"
#include "runtime/base/passed_files.h"

namespace fleetrun::launcher {

/// What comes back from a pod. Called from the loop, one at a time.
class PodListener {
 public:
  virtual ~PodListener() = default;
  /// contained, started, failed, exited, swept, unkillable, stands, lapsed, left_running, emptied: in the
  /// order in which it happened.
  virtual void on_frame(const Frame& frame) = 0;
  /// The pod is gone without having said that it is empty.
  virtual void on_lost() = 0;
};

/// An open descriptor that a process gets beside its standard ones.
struct PassedDescriptor {
  int fd = -1;
  int number = -1;  // in the process: 3 and up, or 1 and 2 in place of the log
};

/// What one start of a process has beyond its specification. Descriptors are borrowed for the call.
struct StartExtras {
  int log_fd = -1;
  int stdin_fd = -1;                          // -1: /dev/null
  bool controls_stdin = false;                // stdin_fd becomes its controlling terminal
  std::vector<std::string> environment = {};  // over the specification's: NAME=VALUE, or NAME without one
  std::vector<PassedDescriptor> passed = {};  // at most kMaxPassed
  bool alone = false;                         // it may be swept alone: a cgroup of its own where possible
};

constexpr std::size_t kMaxPassed = kMaxPassedFiles - 2;

class Pod {
 public:
  virtual ~Pod() = default;
  /// Throws: Error(spawn) when `extras` passes too many descriptors, or none are left to hold them.
  virtual void start(std::size_t index, const ProcessSpec& spec, const StartExtras& extras) = 0;
  /// Sends `number` to the process's group; `resume` then wakes what is stopped in it. Nothing happens to a
  /// process that has ended.
  virtual void signal(std::size_t index, int number, bool resume) = 0;
  /// SIGKILL to the process and its group.
  virtual void kill(std::size_t index) = 0;
  /// SIGKILL to every process and its group.
  virtual void kill() = 0;
  /// Kills everything that is left below init, orphans too; `swept` (kEveryProcess) follows when it is gone,
  /// and after it processes can be started again.
  virtual void sweep() = 0;
  /// Kills the process, if it lives, and what it left behind; `swept` (its index) follows.
  virtual void sweep(std::size_t index) = 0;
  /// Until when the processes may run without another call of this; `stands` and `lapsed` follow where they
  /// did not come.
  virtual void lease(const LeaseFrame& lease) = 0;
  /// Kills what is left; `emptied` follows. gently: what does not end by itself within a moment is named
  /// before (`left_running`).
  virtual void finish(bool gently) = 0;
};

}  // namespace fleetrun::launcher
