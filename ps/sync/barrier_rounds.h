// Rounds in which every trainer takes part once: barriers, sums over all trainers, the start of an epoch.
// Pure bookkeeping; ps/sync/barrier_service.h holds the lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "ps/base/outcome.h"
#include "ps/sync/trainer_registry.h"

namespace fleetrun::ps {

class BarrierRounds {
 public:
  struct Entry {
    std::vector<double> values;
    Respond respond;
    /// As its trainer counts its arrivals; 0 where it does not.
    std::uint64_t number = 0;
    std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  };
  /// By trainer.
  using Round = std::map<std::uint32_t, Entry>;

  /// A trainer's n-th arrival belongs to the n-th round that it sees.
  /// One that comes again waits beside the first.
  void arrive(std::uint32_t trainer, Entry entry);
  /// The oldest round, once everyone has arrived in it whom the trainer registry awaits.
  std::optional<Round> take_complete(const TrainerRegistry& trainer_registry);
  /// A trainer that is gone: takes it out of all rounds. Returns its waits.
  std::vector<Respond> drop(std::uint32_t trainer);
  /// Everyone who waits, in all rounds; it is empty then.
  std::vector<Respond> give_up();

  const std::deque<Round>& rounds() const noexcept { return rounds_; }

 private:
  std::deque<Round> rounds_;
};

}  // namespace fleetrun::ps
