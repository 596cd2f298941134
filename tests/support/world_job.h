// A job of ranks that are threads or children of one test: where its store is, and its secret.
#pragma once

#include <chrono>

#include "collective/groups/world.h"
#include "tests/support/port_lease.h"

namespace fleetrun::tests {

struct WorldJob {
  PortLease port;
  Access access{Secret::random(), "/job/secret"};

  collective::WorldOptions options(int rank, int size) const {
    collective::WorldOptions options;
    options.rank = rank;
    options.size = size;
    options.store = port.endpoint();
    options.access = access;
    options.attempt = "attempt 0";
    options.meet_within = std::chrono::seconds(20);
    options.call_within = std::chrono::seconds(20);
    return options;
  }
};

}  // namespace fleetrun::tests
