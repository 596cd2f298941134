// The epochs that each trainer has begun, and where trainers do not wait for each other how many steps of its
// threads are in the tables. A trainer that is started again goes on after them.
//
// A trainer that then pushes outside of these epochs (a loop of its own over its data) is counted no more:
// nobody could tell how far it was.
//
// Pure bookkeeping; ps/sync/barrier_service.h holds the lock.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "ps/base/bytes.h"
#include "ps/base/greeting.h"
#include "ps/sync/sync_epoch.h"

namespace fleetrun::ps {

class CountedEpochs {
 public:
  /// The trainer's epochs are to be kept.
  void expect(std::uint32_t trainer) { trainers_.try_emplace(trainer); }
  /// Its epoch of this number, from 1; one that was begun before goes on.
  void begin(std::uint32_t trainer, std::uint64_t number, const wire::BeginEpoch& epoch);
  /// What the thread pushes from now on is no step of the epoch.
  void leave(const Participant& participant);
  bool knows(std::uint32_t trainer) const {
    const auto found = trainers_.find(trainer);
    return found != trainers_.end() && found->second.is_countable != 0;
  }
  /// Whether a thread of its last epoch has not come to its end.
  bool is_cut(std::uint32_t trainer) const;
  /// Whether the trainer has begun another one since.
  bool is_over(std::uint32_t trainer, std::uint64_t number) const {
    return knows(trainer) && number < marks(trainer).size();
  }
  void forget(std::uint32_t trainer) { trainers_.erase(trainer); }

  /// One step more of each of these threads, or one less: it was refused.
  void count(std::uint32_t trainer, std::span<const std::uint32_t> threads, bool refused = false);

  /// Of a trainer that it knows.
  const std::vector<wire::EpochMark>& marks(std::uint32_t trainer) const {
    return trainers_.at(trainer).marks;
  }
  /// Of its last epoch, by thread.
  std::vector<std::uint64_t> steps(std::uint32_t trainer) const;

  // For checkpoints.
  void write(Bytes& out) const;
  void read(Reader& in);

 private:
  struct Thread {
    std::uint64_t steps = 0;
    std::uint64_t has_left = 0;
  };
  struct Trainer {
    std::vector<wire::EpochMark> marks;  // by epoch
    std::vector<Thread> threads;         // of the last one
    std::uint64_t is_countable = 1;
  };
  std::map<std::uint32_t, Trainer> trainers_;
};

}  // namespace fleetrun::ps
