// The participants of an epoch in sync mode and what they have pushed in the current step.
//
//   away     takes no part (any more)
//   thinking in the epoch, has not pushed this step
//   measuring has sent what it will push, to hear what the step's mean will be
//   waiting  has pushed; the step is complete when no participant is thinking
//   applying its push is being applied; thinking again afterwards
//
// The steps of each thread are counted until the next epoch begins:
// a trainer that is started again goes on after them.
//
// Pure bookkeeping; ps/sync/barrier_service.h holds the lock.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "ps/base/bytes.h"
#include "ps/base/outcome.h"
#include "ps/base/wire.h"
#include "ps/durable/write_barrier.h"

namespace fleetrun::ps {

struct Participant {
  std::uint32_t trainer = 0;
  std::uint32_t thread = 0;

  auto operator<=>(const Participant&) const = default;
};

struct Contribution {
  Participant from;
  std::unique_ptr<wire::PushRequest> push;
  Respond respond;
  ChangeId change = {};
  /// The request's body as it came, for the log.
  Reader body = {};
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
};

class SyncEpoch {
 public:
  /// Starts over with threads[trainer] threads of each trainer.
  void begin(const std::map<std::uint32_t, std::uint32_t>& threads);
  /// The threads of a trainer that comes while an epoch is under way.
  void join(std::uint32_t trainer, std::uint32_t threads);
  void join(const Participant& participant);
  bool is_under_way() const noexcept { return !participants_.empty(); }
  void leave(const Participant& participant) { participants_.erase(participant); }
  /// Takes all threads of a trainer out of the epoch. Returns their waits:
  /// what they pushed in this step is dropped.
  std::vector<Respond> leave_all(std::uint32_t trainer);
  /// Another process goes on for this trainer: all threads that it had in the epoch take part, and none
  /// waits. Returns the waits of the one before: what it pushed in this step is dropped, unless it is being
  /// applied.
  std::vector<Respond> take_over(std::uint32_t trainer);
  /// Throws: Error(config) when the participant takes no part, or its last push has not been applied yet.
  void push(Contribution contribution);
  /// Throws: as push. Returns the wait of an earlier one of the same participant, whose connection is gone.
  std::vector<Respond> measure(Contribution contribution);
  /// What the participants have sent, in the order (trainer, thread), when one measures and all have; else
  /// nothing.
  std::vector<const wire::PushRequest*> measured() const;
  std::vector<Respond> take_measuring();
  /// The pushes of a complete step in the order (trainer, thread), or nothing. They are being applied until
  /// finish() is called with them.
  std::vector<Contribution> take_complete();
  void finish(const std::vector<Contribution>& step);
  /// Returns the waits of all: what they pushed in this step is dropped, and they still take part.
  std::vector<Respond> drop_waits();
  /// Nobody takes part any more, and nobody waits (drop_waits()).
  void end() { participants_.clear(); }

  /// The steps that a trainer's threads have pushed to the end, those that are being applied among them.
  std::vector<std::uint64_t> steps(std::uint32_t trainer) const;
  /// Since when all threads that it has in the epoch wait for those of others; none while one does not.
  std::optional<std::chrono::steady_clock::time_point> waits_since(std::uint32_t trainer) const;
  /// Whether one of them is being applied.
  bool is_applying(std::uint32_t trainer) const;
  /// These are in the tables now.
  void count(const std::vector<Participant>& step);

  // For checkpoints: who takes part, and the steps of each thread that are in the tables.
  void write(Bytes& out) const;
  void read(Reader& in);

 private:
  struct State {
    bool applying = false;
    std::unique_ptr<Contribution> waiting;
    std::unique_ptr<Contribution> measuring;

    void take_waits(std::vector<Respond>& to);
  };
  State& state_of(const Participant& participant);
  struct Steps {
    std::uint64_t taken = 0;    // also those that are being applied
    std::uint64_t applied = 0;  // in the tables
  };
  std::map<Participant, State> participants_;
  std::map<Participant, Steps> steps_;  // also of those who have left
};

}  // namespace fleetrun::ps
