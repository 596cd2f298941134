#include "launcher/init/init_failpoint.h"

#include <doctest/doctest.h>

using namespace fleetrun;
using namespace fleetrun::launcher;

TEST_CASE("a failpoint has its duration by its whole name, and its usual one otherwise") {
  const Environ environment = {
      {"FLEETRUN_FAILPOINT", "init-report-delay=200ms,init-record-delay=1,broken=x,alone"}};
  CHECK(failpoint_ms(environment, "init-report-delay") == 200);
  CHECK(failpoint_ms(environment, "init-record-delay") == 1000);
  CHECK(failpoint_ms(environment, "init-report") == 0);
  CHECK(failpoint_ms(environment, "broken", 7) == 7);
  CHECK(failpoint_ms(environment, "alone", 7) == 7);
  CHECK(failpoint_ms({}, "init-report-delay", 5) == 5);
}
