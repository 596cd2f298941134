#include "runtime/base/process_end.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "tests/support/old_kernel.h"

namespace fleetrun {
namespace {

bool has_ended(const UniqueFd& process, int patience) {
  pollfd wait = {process.value(), POLLIN, 0};
  return ::poll(&wait, 1, patience) == 1;
}

/// Its end is seen once it is there, and is still the caller's to reap.
bool sees_the_end_of_a_child() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const UniqueFd process = watch_end(child);
  if (!process || has_ended(process, 0)) return false;
  ::kill(child, SIGKILL);  // doctest catches others, in its children too
  int status = 0;
  return has_ended(process, 10'000) && ::waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGKILL;
}

bool sees_the_end_of_another() {
  int ends[2];
  pid_t grandchild = -1;
  if (::pipe(ends) != 0) return false;
  const pid_t child = ::fork();
  if (child == 0) {
    grandchild = ::fork();
    if (grandchild != 0 && ::write(ends[1], &grandchild, sizeof grandchild) != sizeof grandchild) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  if (::read(ends[0], &grandchild, sizeof grandchild) != sizeof grandchild) return false;
  const UniqueFd process = watch_end(grandchild);
  const bool is_waited_for = process && !has_ended(process, 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::kill(grandchild, SIGKILL);
  return is_waited_for && has_ended(process, 10'000);
}

/// Of another user, as a program with a setuid bit is.
bool waits_for_who_may_not_be_killed() {
  constexpr uid_t kNobody = 65534;
  const pid_t other = ::fork();
  if (other == 0) {
    ::pause();
    ::_exit(0);
  }
  const pid_t watcher = ::fork();
  if (watcher == 0) {
    if (::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(2);
    const UniqueFd process = watch_end(other);
    ::_exit(process && !has_ended(process, 0) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(watcher, &status, 0);
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  const bool may_not_try = WEXITSTATUS(status) == 2;
  return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || may_not_try);
}

bool knows_who_is_gone() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return !watch_end(child) && errno == ESRCH;
}

}  // namespace

TEST_CASE("the end of a process can be waited for with and without pidfds") {
  for (const int error : {0, ENOSYS, EPERM}) {
    CAPTURE(error);
    const auto holds = [&](bool (*what)()) {
      return error == 0 ? what() : tests::holds_without({SYS_pidfd_open}, error, what);
    };
    CHECK(holds(sees_the_end_of_a_child));
    CHECK(holds(sees_the_end_of_another));
    CHECK(holds(waits_for_who_may_not_be_killed));
    CHECK(holds(knows_who_is_gone));
  }
}

TEST_CASE("whether there are pidfds is known") {
  CHECK(has_pidfds());
  CHECK(tests::holds_without({SYS_pidfd_open}, ENOSYS, [] { return !has_pidfds(); }));
}

}  // namespace fleetrun
