// The highest level of containment: a pid namespace for the pod, whose first process is init. The kernel
// kills everything in it when that one ends, and that one dies with the process that made it: fleetrun and
// both inits may be killed at the same instant, and still nothing is left.
//
//   fleetrun ── outer init ── inner init (pid 1) ── the processes      lifeline: from fleetrun to inner init
//
// It has a /proc of its own, in a mount namespace into which the host's mounts go on being carried. /tmp,
// /dev/shm and everything else are the host's. For a user who is not root it needs a user namespace as well:
// there, files of other owners belong to nobody and setuid programs have no power.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

/// Where inner init is, and the way to the host's pids from there.
class PidNamespace {
 public:
  explicit PidNamespace(UniqueFd host_proc) noexcept : host_proc_(std::move(host_proc)) {}

  /// The pid, as the host sees it, of the process that `pidfd` stands for; -1 when it is not known.
  pid_t host_pid(int pidfd) const;

 private:
  UniqueFd host_proc_;
};

struct NamespaceAttempt {
  std::optional<PidNamespace> inside;  // this is inner init, pid 1 of the namespace
  pid_t inner = -1;                    // this is outer init, and that is inner's pid
  std::string refusal;                 // neither: why there is no namespace
};

/// Forks inner init into a namespace of its own; both return. Single-threaded callers only, all signals
/// blocked. Nothing throws.
NamespaceAttempt enter_pid_namespace();

/// What outer init does from there: waits for inner, hands SIGTERM on to it, and returns its exit status.
/// `signals` is a signalfd of SIGCHLD and SIGTERM.
int await_inner_init(pid_t inner, int signals);

}  // namespace fleetrun::launcher
