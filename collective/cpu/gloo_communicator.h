// A communicator of ranks on several hosts: Gloo's algorithms (and two
// of ours) over TCP connections that prove the job's secret.
//
//   P ranks, S bytes: of a call's buffer (all_gather, reduce_scatter, all_to_all: of the large one)
//   call             steps               bytes that a rank sends       by
//   all_reduce       2 lg P (P = 2^k)    2 S (P-1)/P                   Gloo's bcube, up to 64 KiB
//                    4 (P-1)             2 S (P-1)/P                   Gloo's ring, in two segments
//     float16 means  P                   2 S (P-1)/P                   shares, summed in float32, a ring
//   broadcast        lg P                S lg P at the root at most    Gloo
//   reduce           2 (P-1) + 1         S (P-1)/P + S/P               Gloo's ring, then to the root
//   all_gather       P-1                 S (P-1)/P                     Gloo's ring
//   reduce_scatter   1                   S (P-1)/P                     shares to their ranks,
//                                                                      added in the order of ranks
//   all_to_all       1                   S (P-1)/P                     each share to its rank
//   send, receive    1                   S
//   barrier          lg P                0                             Gloo
//
// The order of additions depends on the number of ranks and elements only; all ranks get the same bits. Each
// rank sends the next one 32 bytes (CallTag) that say what it calls, beside the call's own messages, which
// are of a slot that is made of the same: so calls that differ never mix, and the neighbour finds out. That
// closes the ring: where each rank agrees with its neighbour all agree.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "collective/base/communicator.h"
#include "collective/base/time_limit.h"
#include "collective/store/store.h"
#include "runtime/connect/access.h"

namespace fleetrun::collective {

struct GlooOptions {
  /// Begins the names in the store; another one for every group and every attempt at it.
  std::string name = "gloo";
  /// Of this process, as the others reach it.
  std::string address = "127.0.0.1";
  Access access = {};
  std::chrono::milliseconds meet_within{60'000};
  TimeLimit call_within{std::chrono::minutes(10)};
  /// all_reduce takes fewer steps until here; the same on all ranks.
  std::size_t small_bytes = 64 * 1024;
};

/// Threads: as Communicator. A rank whose connection ends fails the call; who that was is said best by who
/// watches the job's processes and aborts this (collective/groups/world.h).
/// Throws: as connect_mesh().
std::unique_ptr<Communicator> make_gloo_communicator(Place place, Store& store, const GlooOptions& options);

}  // namespace fleetrun::collective
