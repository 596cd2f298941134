// A short cut of the campaign: `cluster_simulation --seeds 1:1000000` is the long one.

#include "tests/support/cluster_simulator.h"

#include <doctest/doctest.h>

using namespace fleetrun::testing;

TEST_CASE("whatever goes wrong, a job has one world for each epoch, goes on where it can, and ends") {
  std::uint64_t worlds = 0, takeovers = 0, well = 0;
  for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
    const SimulationOutcome outcome = simulate_cluster(seed);
    CAPTURE(seed);
    REQUIRE(outcome.violation == "");
    worlds += outcome.worlds;
    takeovers += outcome.takeovers;
    well += outcome.finished_well ? 1 : 0;
  }
  // The schedules are worth something: most jobs form several worlds, some by successors, and many end well.
  CHECK(worlds > 3'000);
  CHECK(takeovers > 100);
  CHECK(well > 1'000);
}

TEST_CASE("schedules of the campaign that once violated something") {
  // A host that leaves freezes, and its connection breaks; processes that end slowly when all are judged;
  // a host that freezes before it reads of its world, while the others go on without it; two pairs of hosts
  // that ask each other who coordinates, and nobody else; a host that is stopped while a new coordinator
  // waits for the lease of another; a coordinator whose own host is stopped first, and then the job.
  for (const std::uint64_t seed : {241'055u, 244'296u, 475'647u, 672'573u, 1'052'249u, 2'043'843u}) {
    CAPTURE(seed);
    CHECK(simulate_cluster(seed).violation == "");
  }
}

TEST_CASE("a seed is the same schedule each time") {
  const SimulationOutcome first = simulate_cluster(77, true), second = simulate_cluster(77, true);
  CHECK(first.trace == second.trace);
  CHECK(first.events == second.events);
  CHECK(simulate_cluster(77).events == first.events);
  CHECK_FALSE(first.trace.empty());
}
