// What the kernel says of where threads are: the system call of each, what it is about, and, to root, the
// functions inside the kernel. Needs no tool, and no consent of the process. Files of a process that is stuck
// in the kernel may make the reader wait, so it is read apart (launcher/stacks/stack_tool)
// and comes back as text.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/stacks/stack_groups.h"

namespace fleetrun::launcher {

/// "futex" of 202; "system call 999" of a number without a name here.
std::string system_call_name(long number);

/// The stacks of `pid`'s threads, by the files below `proc`, the main thread first; empty when it is gone.
std::vector<ThreadStack> read_kernel_stacks(pid_t pid, const std::string& proc = "/proc");

// Lines of text, and back: "P pid", then for each thread "T name" and for each frame "F function\twhere".
std::string encode_kernel_stacks(pid_t pid, const std::vector<ThreadStack>& threads);
std::map<pid_t, std::vector<ThreadStack>> decode_kernel_stacks(std::string_view text);

}  // namespace fleetrun::launcher
