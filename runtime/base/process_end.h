// Waiting for the end of a process by a descriptor, as for anything else that a loop or poll() waits for.
#pragma once

#include <sys/types.h>

#include "runtime/base/unique_fd.h"

namespace fleetrun {

/// What can be read from once process `pid` has ended: a pidfd. Where there are none (Linux before 5.3, or a
/// container that forbids pidfd_open) it is a pipe that a thread closes, for a process that is not a child of
/// this one up to 20 ms after it was reaped. Close-on-exec. Empty, with errno: there is no such process
/// (ESRCH), or no descriptor.
UniqueFd watch_end(pid_t pid);

/// Whether signals can be sent to a process by a pidfd, and so never to another that got its pid.
bool has_pidfds() noexcept;

}  // namespace fleetrun
