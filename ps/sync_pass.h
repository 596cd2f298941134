// The participants of a pass in sync mode and what they have pushed in the current step.
//
//   away     takes no part (any more)
//   thinking in the pass, has not pushed this step
//   waiting  has pushed; the step is complete when no participant is thinking
//   applying its push is being applied; thinking again afterwards
//
// Pure bookkeeping; ps/meeting.h holds the lock.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "ps/durable/gate.h"
#include "ps/outcome.h"
#include "ps/wire.h"

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
};

class SyncPass {
 public:
  /// Starts over with threads[trainer] threads of each trainer.
  void begin(const std::map<std::uint32_t, std::uint32_t>& threads);
  /// The threads of a trainer that comes while a pass is under way.
  void join(std::uint32_t trainer, std::uint32_t threads);
  void join(const Participant& participant) { participants_.try_emplace(participant); }
  bool is_under_way() const noexcept { return !participants_.empty(); }
  void leave(const Participant& participant) { participants_.erase(participant); }
  /// Takes all threads of a trainer out of the pass. Returns their waits: what they pushed in this step is dropped.
  std::vector<Respond> leave_all(std::uint32_t trainer);
  /// Throws: Error(config) when the participant takes no part, or its last push has not been applied yet.
  void push(Contribution contribution);
  /// The pushes of a complete step in the order (trainer, thread), or nothing. They are being applied until
  /// finish() is called with them.
  std::vector<Contribution> take_complete();
  void finish(const std::vector<Contribution>& step);
  /// Everyone who waits; the pass is over then.
  std::vector<Respond> give_up();

  std::vector<Participant> participants() const;

 private:
  struct State {
    bool applying = false;
    std::unique_ptr<Contribution> waiting;
  };
  std::map<Participant, State> participants_;
};

}  // namespace fleetrun::ps
