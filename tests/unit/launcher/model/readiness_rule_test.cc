#include "launcher/model/readiness_rule.h"

#include <doctest/doctest.h>

using namespace fleetrun::launcher;

TEST_CASE("what is wrong with a regular expression is said") {
  CHECK(regex_fault("ready|up").empty());
  CHECK_FALSE(regex_fault("(").empty());
}
