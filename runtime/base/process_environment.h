// The variables that a process was started with, as /proc shows them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace fleetrun {

/// Whether the environment with which the process began its program has every one of `entries`
/// ("NAME=VALUE"). False for none, for a process that has ended, and where it may not be read. In the midst
/// of execve() the kernel shows no environment at all: that is waited out, a second at most.
bool was_started_with(pid_t pid, const std::vector<std::string>& entries);

}  // namespace fleetrun
