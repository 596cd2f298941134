// How far trainer threads may get ahead of each other where staleness is bounded: a thread that wants to
// begin a step waits until the slowest one is within its bound. Kept by server 0.
//
// A thread takes part from its first step to its leaving. One that comes while others are under way starts
// where the slowest of them is, so that nobody waits for it to catch up; one that comes back, at the step
// after its last one or later, so that epochs do not add to its lead. When nobody is under way all start
// even. The slowest never waits, so somebody always goes on.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ps/base/outcome.h"
#include "ps/sync/sync_epoch.h"

namespace fleetrun::ps {

/// Pure bookkeeping: whoever calls answers those that are returned, and holds a lock. Threads: one at a time.
class StalenessBound {
 public:
  struct Step {
    Participant from;
    /// Counts the steps of a thread from 0.
    std::uint64_t number = 0;
    std::uint64_t bound = 0;
    Respond respond;
  };

  std::vector<Respond> begin(Step step);
  std::vector<Respond> leave(const Participant& participant);
  std::vector<Respond> leave_all(std::uint32_t trainer);
  /// Everyone who waits.
  std::vector<Respond> give_up();

 private:
  struct Clock {
    /// Added to a thread's own number.
    std::int64_t offset = 0;
    std::int64_t time = 0;
  };
  struct Waiting {
    Participant from;
    std::int64_t until = 0;
    Respond respond;
  };
  std::int64_t slowest() const noexcept;
  std::int64_t start_of(const Participant& newcomer) const noexcept;
  std::vector<Respond> release();

  std::map<Participant, Clock> clocks_;
  std::map<Participant, std::int64_t> left_at_;
  std::int64_t furthest_ = 0;
  std::vector<Waiting> waiting_;
};

}  // namespace fleetrun::ps
