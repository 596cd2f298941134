// A communicator of ranks on one host, over shared memory.
//
// Calls are as collective/cpu/shared_calls.h says; what they cost beside other libraries: scripts/bench
// collective. All ranks get the same bits. A rank that dies fails the call under way on all others at once;
// so does one that leaves while others still call. A process that was forked
// from a rank has no part in its groups.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "collective/base/communicator.h"
#include "collective/base/time_limit.h"
#include "collective/store/store.h"

namespace fleetrun::collective {

struct SharedOptions {
  /// Begins the name in the store, "NAME/memory"; another one for every group and every attempt at it.
  std::string name = "shared";
  /// How long to wait for all ranks to meet.
  std::chrono::milliseconds meet_within{60'000};
  /// How long a call waits for the other ranks.
  TimeLimit call_within{std::chrono::minutes(10)};
  // What follows is rank 0's for all.
  std::size_t slot_bytes = 256 * 1024;     // a rank puts so much in at once; each has four such slots
  std::size_t message_bytes = 256 * 1024;  // of send and receive; each rank has four such buffers
  /// Until here every rank reduces everything; the same on all ranks.
  /// 0: what was measured to be best for so many ranks.
  std::size_t whole_bytes = 0;
  /// Whether ranks look for each other some microseconds before they sleep; only done where each has a core.
  bool spins = true;
};

/// Threads: as Communicator.
/// Throws: Error(timeout) naming the ranks that did not come, Error(network) naming one that died meanwhile,
/// Error(host) where there is not enough memory, on all ranks.
std::unique_ptr<Communicator> make_shared_communicator(Place place, Store& store,
                                                       const SharedOptions& options = {});

/// All ranks of a group whose ranks are threads of this process; one memory, and nobody who could die.
std::vector<std::unique_ptr<Communicator>> make_thread_communicators(const std::string& group, int size,
                                                                     const SharedOptions& options = {});

}  // namespace fleetrun::collective
