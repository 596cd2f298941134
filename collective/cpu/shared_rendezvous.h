// How the ranks of a group on one host come to have memory in common.
//
// Rank 0 listens on an abstract unix socket with a random name, which vanishes with it, and puts that name
// and a random token into the store. Every other rank connects and says the token; both look that the other
// is of their user. When all are there rank 0 passes the memory. The connections stay open: their end is the
// end of a rank (collective/cpu/shared_watch.h).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "collective/base/communicator.h"
#include "collective/cpu/shared_segment.h"
#include "collective/store/store.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::collective {

struct SharedPeer {
  int rank = 0;
  UniqueFd socket;
  pid_t process = 0;  // 0: not known, in another process namespace
};

struct SharedRendezvous {
  SharedSegment segment;
  std::vector<SharedPeer> peers;  // rank 0: all others; the others: rank 0
};

/// `name` begins the name in the store; `shape` and `spins` are rank 0's: whether ranks spin where they have
/// the cores. Throws: Error(timeout) naming the ranks that did not come, Error(network) naming one that died,
/// Error(host) without memory; on all ranks that can be reached.
SharedRendezvous meet_in_memory(const Place& place, Store& store, const std::string& name,
                                const SharedShape& shape, bool spins, Store::Clock::time_point deadline);

}  // namespace fleetrun::collective
