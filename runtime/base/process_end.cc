#include "runtime/base/process_end.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "runtime/base/quiet_thread.h"

namespace fleetrun {
namespace {

constexpr int kBetweenLooks = 20;  // milliseconds

// <sys/pidfd.h> of glibc 2.36 declares this as a C++ function, which nothing defines.
int open_pidfd(pid_t pid) noexcept {
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

/// The process is left for others to reap.
void wait_for(pid_t pid) noexcept {
  siginfo_t ignored;
  int failed = 0;
  do {
    failed = ::waitid(P_PID, static_cast<id_t>(pid), &ignored, WEXITED | WNOWAIT);
  } while (failed != 0 && errno == EINTR);
  if (failed == 0 || errno != ECHILD) return;
  while (::kill(pid, 0) == 0 || errno != ESRCH) ::poll(nullptr, 0, kBetweenLooks);
}

/// By a thread that nobody waits for: it ends with the process.
bool close_at_end(UniqueFd writing, pid_t pid) {
  try {
    quiet_thread([pid, end = std::move(writing)] { wait_for(pid); }).detach();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace

UniqueFd watch_end(pid_t pid) {
  UniqueFd process(open_pidfd(pid));
  if (process || (errno != ENOSYS && errno != EPERM)) return process;
  int ends[2];
  const bool is_there = ::kill(pid, 0) == 0 || errno == EPERM;  // of another user
  if (!is_there || ::pipe2(ends, O_CLOEXEC) != 0) return {};
  UniqueFd reading(ends[0]);
  if (close_at_end(UniqueFd(ends[1]), pid)) return reading;
  errno = EAGAIN;
  return {};
}

bool has_pidfds() noexcept {
  return static_cast<bool>(UniqueFd(open_pidfd(::getpid())));
}

}  // namespace fleetrun
