// The collective calls of a group in shared memory, all but send and receive.
//
//   all_reduce, reduce  small: in steps of a part of a slot: every rank puts its input into its slot and
//                       reduces all slots; waits: one a step
//   all_reduce, reduce  large: in steps of one slot: every rank puts the shares of the others into its slot,
//                       reduces its own share of all slots into its slot and its output, and takes the
//                       others' reduced shares; waits: steps + 2
//   reduce_scatter      in steps: puts the others' shares into its slot, reduces its own share of all slots;
//                       waits: steps + 1
//   broadcast, all_gather, all_to_all
//                       in steps: puts its input into its slot, takes what is for it; waits: steps + 1
//
// Steps follow each other without waiting for the slowest rank: while one is reduced the next is put in, and
// the one before is taken. Every element is reduced by one rank, in the order of ranks,
// so that all ranks get the same bits.
#pragma once

#include <cstddef>
#include <vector>

#include "collective/cpu/reduce_kernels.h"
#include "collective/cpu/shared_rounds.h"

namespace fleetrun::collective {

/// Threads: one at a time.
class SharedCalls {
 public:
  /// In all_reduce and reduce of at most `whole_bytes` every rank reduces everything.
  SharedCalls(SharedRounds& rounds, std::size_t whole_bytes);
  /// Throws: what SharedRounds::await() does, and Error(config)
  /// where all_to_all's counts of two ranks differ.
  void run(const Call& call);

 private:
  void barrier();
  void reduce_whole(const Call& call);
  void reduce_in_shares(const Call& call);
  void broadcast(const Call& call);
  void all_gather(const Call& call);
  void reduce_scatter(const Call& call);
  void all_to_all(const Call& call);

  /// put(step) and take(step) for all steps, as the table above says;
  /// `steps()` is asked after the first wait.
  template <class Steps, class Put, class Take>
  void in_two(const Steps& steps, const Put& put, const Take& take);
  template <class Put, class Reduce, class Take>
  void in_three(std::size_t steps, const Put& put, const Reduce& reduce, const Take& take);

  void expect_counts(int other, std::uint64_t sends, std::uint64_t expects);
  /// Reduces `count` elements that lie `at` bytes into every rank's slot of `phase`;
  /// this rank's lie at `own`.
  void reduce_slots(const Call& call, std::uint64_t phase, std::size_t at, const void* own, void* output,
                    std::size_t count);

  SharedRounds* rounds_;
  int rank_, size_;
  std::size_t slot_bytes_, whole_bytes_;
  std::vector<const void*> inputs_;
};

}  // namespace fleetrun::collective
