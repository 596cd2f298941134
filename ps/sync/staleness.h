// How stale gradients are: for each push, how many pushes of other trainers were applied between its thread's
// pull of the values that it was computed from and the push itself. Counted by a server, of what came to it.
//
// A thread's pulls and pushes pair off in their order, those with rows and those of dense tables apart: a
// thread that runs ahead pulls for the next step before it pushes this one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>

#include "ps/base/staleness_counts.h"
#include "ps/sync/sync_epoch.h"

namespace fleetrun::ps {

/// Threads: all calls may be made from several threads at once.
class Staleness {
 public:
  enum class Kind { rows, dense };

  /// Before the values are read.
  void pulled(const Participant& from, Kind kind);
  /// After the push was applied. One whose pull is not known is not counted.
  void pushed(const Participant& from, Kind kind);
  /// Of all trainers, from the beginning.
  StalenessCounts counts() const;
  /// Of one trainer, since the last time.
  StalenessCounts take(std::uint32_t trainer);

 private:
  struct Pushes {
    std::uint64_t all = 0;
    std::map<std::uint32_t, std::uint64_t> by_trainer;

    std::uint64_t of_others(std::uint32_t trainer) const;
  };
  /// Pulls of a thread that are remembered.
  static constexpr std::size_t kMax = 8;

  mutable std::mutex mutex_;  // guards what follows
  std::map<Kind, Pushes> pushes_;
  std::map<Kind, std::map<Participant, std::deque<std::uint64_t>>> pulls_;
  StalenessCounts counts_;
  std::map<std::uint32_t, StalenessCounts> of_trainers_;
};

}  // namespace fleetrun::ps
