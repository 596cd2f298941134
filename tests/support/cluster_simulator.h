// A whole job of several hosts in one thread, without a network: real MemberCores and CoordinatorCores over
// virtual connections, in virtual time. A seed decides about everything:
// hosts, rules, delays, and what goes wrong.
//
// What goes wrong: connections that break, links that are cut in one direction or both, partitions, launchers
// that are killed (and started again), hosts that vanish without a word, launchers that are frozen while
// their processes run on, processes that fail, nodes that come late, users that stop one.
//
// What must hold, whatever goes wrong:
//   one world for each generation of a run: all who are told it have the same hash
//   each member finds itself at its rank; ranks have no holes (in place: no two are the same)
//   the generations that a node is told only grow
//   nodes that are not frozen do not run different attempts of a job for longer than a lease
//   when all links work again and enough nodes live, a world runs within a bound;
//   and every launcher ends, with a reason
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fleetrun::testing {

struct SimulationOutcome {
  std::string violation;           // empty: all held
  std::vector<std::string> trace;  // only when it was asked for
  std::uint64_t events = 0;
  std::uint64_t worlds = 0;     // that were formed
  std::uint64_t takeovers = 0;  // by a successor that formed a world
  bool finished_well = false;   // the job ended with status 0
};

SimulationOutcome simulate_cluster(std::uint64_t seed, bool traced = false);

}  // namespace fleetrun::testing
