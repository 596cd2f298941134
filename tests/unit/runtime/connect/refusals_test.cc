#include "runtime/connect/refusals.h"

#include <doctest/doctest.h>

using fleetrun::Refusals;

TEST_CASE("every refusal is counted, whoever comes and however often") {
  Refusals refusals("server 0");
  for (int i = 0; i < 1000; ++i) refusals.note("10.0.0.1", "it has another secret");
  for (int i = 0; i < 3000; ++i) refusals.note("10.0.1." + std::to_string(i), "");
  CHECK(refusals.count() == 4000);
}
