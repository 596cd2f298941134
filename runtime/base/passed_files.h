// Descriptors that travel beside bytes over a Unix socket (SCM_RIGHTS).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/base/unique_fd.h"

namespace fleetrun {

constexpr std::size_t kMaxPassedFiles = 250;  // in one message; the kernel's limit is 253

/// sendmsg() without a signal: files go with the first of the bytes, of which there is at least one. The
/// sender keeps its own. Returns how many bytes were sent, or -1 with errno.
ssize_t send_with_files(int socket, std::span<const std::byte> bytes, std::span<const int> files) noexcept;

struct WithFiles {
  ssize_t count = 0;  // of bytes; 0 at the end; -1 with errno
  std::vector<UniqueFd> files;
};
/// recvmsg() with `flags`; the files are closed on exec.
WithFiles receive_with_files(int socket, std::span<std::byte> bytes, int flags);

}  // namespace fleetrun
