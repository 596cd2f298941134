// What children of fleetrun that are none of the job's processes are started with.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

/// In the child, right after fork(): every signal has its default and none is blocked, the session is its
/// own, and it ends with the thread of `parent` that forked. Handlers of Asio write to a pipe that the child
/// shares with fleetrun, so the defaults come before the signals.
void settle_child(pid_t parent) noexcept;

/// `words` as execve() wants them, borrowed.
std::vector<char*> pointers(const std::vector<std::string>& words);

/// A file without a name that has `bytes`, at its beginning. Throws: Error(spawn).
UniqueFd memory_file(const std::string& bytes);

}  // namespace fleetrun::launcher
