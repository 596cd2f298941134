#include "runtime/base/error.h"

#include <cerrno>

#include <doctest/doctest.h>

using fleetrun::Error;
using fleetrun::ErrorKind;

TEST_CASE("an error is rendered with its context, innermost first, and its hint") {
  Error error(ErrorKind::config, "3 trainers asked for, 2 devices visible", "set --trainer_num=2");
  error.while_doing("planning pod 10.0.0.2").while_doing("planning the job");
  CHECK(fleetrun::render(error, "fleetrun") ==
        "fleetrun: error: 3 trainers asked for, 2 devices visible\n"
        "  while: planning pod 10.0.0.2\n"
        "  while: planning the job\n"
        "  hint: set --trainer_num=2");
}

TEST_CASE("while_doing adds context to an error that leaves the action, and returns its result otherwise") {
  CHECK(fleetrun::while_doing("adding", [] { return 2 + 3; }) == 5);
  try {
    fleetrun::while_doing("reading hosts.txt line 3",
                          []() -> int { throw Error(ErrorKind::data, "bad host name"); });
    FAIL("no error was thrown");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    REQUIRE(error.context().size() == 1);
    CHECK(error.context()[0] == "reading hosts.txt line 3");
  }
}

TEST_CASE("check_errno names the call, the purpose and the reason") {
  CHECK(fleetrun::check_errno(7, "open", "opening x") == 7);
  errno = ENOENT;
  try {
    fleetrun::check_errno(-1, "open", "opening log/workerlog.0");
    FAIL("no error was thrown");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "opening log/workerlog.0: No such file or directory (open)");
  }
}
