// The one way in which files are opened that are written: never through a symbolic link that somebody put in
// the file's place, never a file of another user, and a file that is made is no more readable than its
// directory. scripts/lint refuses others.
#pragma once

#include <string>

#include "runtime/base/unique_fd.h"

namespace fleetrun {

/// Who may read a file that is made.
enum class Readers {
  owner,         // 0600: logs, checkpoints, what a job says of itself
  by_directory,  // 0600 in a directory that is the user's alone; elsewhere what the umask leaves
};

/// As ::openat and ::open with O_NOFOLLOW and O_CLOEXEC. What is there already has to be a regular file of
/// this user or of root, or errno is EPERM; O_TRUNC empties it only then. Returns the descriptor, or -1 and
/// errno.
int open_own_at(int directory, const std::string& name, int flags, Readers readers) noexcept;
int open_own(const std::string& path, int flags, Readers readers) noexcept;

/// Makes `path`, with the directories above it, for files that are nobody else's business: mode 0700. One
/// that is there and of this user gets this mode.
/// Throws: Error(host) where it is a symbolic link, of another user, or cannot be made.
void make_own_directory(const std::string& path);

}  // namespace fleetrun
