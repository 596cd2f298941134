#include "runtime/base/exit_reason.h"

#include <sys/wait.h>

#include <csignal>

#include <doctest/doctest.h>

using namespace fleetrun;

TEST_CASE("every exit code comes back as itself") {
  for (int code = 0; code <= 255; ++code) {
    const ExitReason reason = exit_reason_from(W_EXITCODE(code, 0));
    CHECK(exit_status(reason) == code);
    CHECK(reason.ok() == (code == 0));
    CHECK(to_string(reason) == "exited with " + std::to_string(code));
  }
}

TEST_CASE("every signal comes back as 128 + its number, and is not mistaken for the exit code") {
  for (int number = 1; number < 32; ++number) {
    const ExitReason reason = exit_reason_from(W_EXITCODE(0, number));
    CHECK(exit_status(reason) == 128 + number);
    CHECK_FALSE(reason.ok());
  }
  CHECK(to_string(exit_reason_from(SIGKILL)) == "was killed by SIGKILL");
  CHECK(to_string(exit_reason_from(SIGSEGV | WCOREFLAG)) == "was killed by SIGSEGV (core dumped)");
  CHECK(to_string(exit_reason_from(W_EXITCODE(9, 0))) == "exited with 9");
  CHECK(signal_name(40) == "signal 40");
}
