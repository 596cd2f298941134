// Built with a check taken out of the state machines: the simulator must see it, or it is worth nothing.

#include <doctest/doctest.h>

#include "tests/support/cluster_simulator.h"

using namespace fleetrun::testing;

TEST_CASE("the simulator finds the check that was taken out") {
  std::uint64_t seed = 1;
  while (seed <= 20'000 && simulate_cluster(seed).violation.empty()) ++seed;
  CAPTURE(seed);
  CHECK_FALSE(simulate_cluster(seed).violation.empty());
}
