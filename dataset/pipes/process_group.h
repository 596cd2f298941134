// Processes that end together: the stages of one pipe command.
//
// All of them are in one process group, whose leader is a guard: a shell that waits on a pipe of which only
// this process holds the other end. Should this process die, even by SIGKILL, the guard kills the group. (The
// kernel's parent-death signal would reach the first process only, and fires when a *thread* ends.) What
// calls setsid leaves the group, but keeps the variable FLEETRUN_PIPE that all of them were started with: it
// is found by that when the group ends, and should this process die first,
// it is the business of fleetrun-init.
//
// Threads: one.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/exit_reason.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::dataset {

class ProcessGroup {
 public:
  /// `environment` is what the processes get, as "NAME=VALUE". Throws: Error(spawn).
  explicit ProcessGroup(std::vector<std::string> environment);
  /// Kills what is left, what has left the group too, and waits for the processes that were started here.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  /// Borrowed descriptors that become 0, 1 and 2 of the process.
  struct Streams {
    int input;
    int output;
    int error;
  };
  /// Starts `argv` (the program is found on PATH), no signal ignored or blocked.
  /// Returns the index for reap(). Throws: Error(spawn) naming the program.
  std::size_t start(const std::vector<std::string>& argv, const Streams& streams);

  /// Readable when the process has ended; -1 once it has been reaped.
  int exit_fd(std::size_t index) const noexcept { return processes_[index].pidfd.value(); }
  std::size_t size() const noexcept { return processes_.size(); }
  bool all_reaped() const noexcept;
  /// Takes the status of a process that has ended, or waits for it.
  /// Throws: Error(spawn) when the status is lost, because SIGCHLD is ignored in this process.
  ExitReason reap(std::size_t index);

  /// SIGKILL to the whole group.
  void kill() noexcept;

 private:
  struct Process {
    pid_t pid = -1;
    UniqueFd pidfd;
  };
  pid_t spawn(std::vector<std::string> argv, const Streams& streams, pid_t group);

  std::vector<std::string> environment_;
  std::string mark_;  // FLEETRUN_PIPE=…
  UniqueFd lifeline_;
  pid_t guard_ = -1;
  std::vector<Process> processes_;
};

/// A pipe whose ends are closed on exec and are none of 0, 1 and 2.
struct Pipe {
  UniqueFd reader;
  UniqueFd writer;
};
/// Throws: Error(spawn).
Pipe make_pipe();

}  // namespace fleetrun::dataset
