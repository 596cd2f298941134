#include "launcher/standard_input.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "tests/support/job_plan.h"

using namespace fleetrun;
using namespace fleetrun::launcher;
using fleetrun::tests::job_plan;
using Kind = StandardInput::Kind;

TEST_CASE("a lone process has standard input, one of several only when its rank is named") {
  CHECK(process_with_input(job_plan(1), {Kind::lone, 0}) == 0u);
  CHECK(!process_with_input(job_plan(2), {Kind::lone, 0}));
  CHECK(!process_with_input(job_plan(1, 1), {Kind::lone, 0}));
  CHECK(!process_with_input(job_plan(1), {Kind::none, 0}));
  CHECK(process_with_input(job_plan(3, 2), {Kind::trainer, 1}) == 3u);
}

TEST_CASE("a rank that is not there is refused") {
  try {
    process_with_input(job_plan(2, 5), {Kind::trainer, 3});
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "--stdin=3 names no trainer of this job");
    CHECK(error.hint() == "name the rank of a trainer, or none");
  }
}

TEST_CASE("what is no terminal is usable as it is") {
  CHECK(usable_input(-1) == -1);
  CHECK(usable_input(1000) == 1000);
}
