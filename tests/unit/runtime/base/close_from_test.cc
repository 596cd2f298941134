#include "runtime/base/close_from.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include <cerrno>

#include "tests/support/old_kernel.h"

namespace fleetrun {
namespace {

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

/// Of four from 200 on, and one far away, the first two stay.
bool closes_the_rest() {
  for (const int number : {200, 201, 202, 203, 900}) ::dup2(STDERR_FILENO, number);
  close_from(202);
  return is_open(200) && is_open(201) && !is_open(202) && !is_open(203) && !is_open(900);
}

}  // namespace

TEST_CASE("all descriptors from one on are closed with and without close_range()") {
  CHECK(tests::holds_without({}, 0, closes_the_rest));
  CHECK(tests::holds_without({SYS_close_range}, ENOSYS, closes_the_rest));
  CHECK(tests::holds_without({SYS_close_range}, EPERM, closes_the_rest));
}

}  // namespace fleetrun
