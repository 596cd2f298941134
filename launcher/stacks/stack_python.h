// The frames of a Python process, read from outside: the state of its interpreter lies at a symbol,
// _PyRuntime, from which threads, frames and code objects hang (launcher/stacks/python_layout). The process
// is not stopped: one that hangs does not move, and of one that moves a frame may be missing. Needs what a
// debugger needs: the same user, and the kernel's leave (ptrace(2)).
#pragma once

#include <sys/types.h>

#include <string>

namespace fleetrun::launcher {

/// CPython 3.8 to 3.14, as py-spy prints it (launcher/stacks/stack_text): 'Thread "MainThread"', and
/// for each frame, innermost first, "    function (file:line)".
/// Throws: Error(host): it may not be read, is gone, or has no interpreter that is known.
std::string read_python_stacks(pid_t pid);

}  // namespace fleetrun::launcher
