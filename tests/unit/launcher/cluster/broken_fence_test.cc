// Built with a check taken out of the state machines: the simulator must see it, or it is worth nothing.

#include <doctest/doctest.h>

#include <string>

#include "tests/support/cluster_simulator.h"

using namespace fleetrun::testing;

namespace {

/// Two groups of hosts both went on.
bool split(const std::string& violation) {
  return violation.find("two worlds have epoch") == 0 ||
         violation.find("still runs epoch") != std::string::npos;
}

}  // namespace

TEST_CASE("without a quorum two groups of hosts go on with the same job, and the simulator sees it") {
  std::uint64_t seed = 1;
  std::string violation;
  for (; seed <= 20'000; ++seed) {
    violation = simulate_cluster(seed).violation;
    if (split(violation)) break;
  }
  MESSAGE("seed " << seed << ": " << violation);
  CHECK(split(violation));
}
