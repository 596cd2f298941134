// The barrier service of a server: who is there, barriers, sums, epochs and the steps of sync mode.
//
// Nobody polls: the last to arrive completes a round, or applies a step, and answers all the others. When a
// trainer is lost without a goodbye everyone who waits for it gets Error(network) naming it; in a job where
// trainers come and go they wait until the job's next world says that it is gone (update()),
// and go on without it.
//
// A trainer that is away, or done, may come back as another process, which begins its script anew
// (Hooks::goes_on): it is told how far the one before it was (rounds(), steps()), gets the results of sums
// again, and has its place in the epoch. Where trainers do not wait for each other, those go on that have
// their epochs counted (begin_counted()).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ps/base/bytes.h"
#include "ps/base/outcome.h"
#include "ps/sync/barrier_events.h"
#include "ps/sync/barrier_rounds.h"
#include "ps/sync/counted_epochs.h"
#include "ps/sync/sum_history.h"
#include "ps/sync/sync_epoch.h"
#include "ps/sync/trainer_registry.h"
#include "ps/sync/trainer_waits.h"

namespace fleetrun::ps {

/// Threads: all calls may be made from several threads at once; answers are given without the lock held.
class BarrierService {
 public:
  enum class GoesOn { no, where_counted, yes };
  struct Hooks {
    /// Applies one step, the pushes in the order (trainer, thread); may throw Error.
    std::function<void(const std::vector<Contribution>&)> apply_step;
    /// All trainers have said goodbye.
    std::function<void()> all_done;
    /// Keeps what has happened, before anybody is told of it; called with the lock held. May throw Error.
    std::function<void(const BarrierEvent&)> keep = {};
    /// Gives an answer once what was kept is where it must be.
    std::function<void(std::function<void()>)> answer = {};
    /// Whether another process of a trainer goes on for it (TrainerRegistry::succeeds).
    GoesOn goes_on = GoesOn::no;
    /// The squares of the mean that a step will have (wire::Method::measure); called with the lock held.
    std::function<Message(const std::vector<const wire::PushRequest*>&)> measure_step = {};
  };
  enum class Kind { barrier, all_reduce, begin_epoch };
  static constexpr std::size_t kKinds = 3;
  using Rounds = std::array<std::uint64_t, kKinds>;
  /// An epoch as a round's values; the number of threads alone stands for one that nothing else is known of.
  static std::vector<double> values_of(const wire::BeginEpoch& epoch);

  BarrierService(std::string server, std::uint32_t trainers, Hooks hooks, std::uint64_t generation = 0);

  /// Throw: as TrainerRegistry does.
  bool hello(const Newcomer& newcomer);
  bool hello(std::uint32_t trainer, std::uint64_t incarnation) { return hello({trainer, incarnation}); }
  /// Before its hello: whether what a process of this trainer did before is forgotten with that;
  /// as TrainerRegistry::begins_again.
  bool is_forgotten(const Newcomer& newcomer, bool after_goodbye) const;
  void require(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t generation = 0) const;
  bool is_stale(std::uint32_t trainer, std::uint64_t generation) const;
  /// The number of the trainer's last complete barrier, sum and epoch.
  Rounds rounds(std::uint32_t trainer) const;
  /// The steps of the trainer's threads in its last epoch, also those that are being applied.
  std::vector<std::uint64_t> steps(std::uint32_t trainer) const;
  /// Whether its epochs are kept, and the last was not completed.
  bool is_cut(std::uint32_t trainer) const;
  /// Its epochs, where they are kept.
  std::vector<wire::EpochMark> marks(std::uint32_t trainer) const;
  /// Calls `then` once none of them is being applied: who goes on after them pulls what they have made.
  void when_applied(std::uint32_t trainer, std::function<void()> then);
  /// Whether this incarnation has said goodbye.
  bool is_done(std::uint32_t trainer, std::uint64_t incarnation) const;
  /// A new world of the job. Returns the trainers that are gone with it.
  std::vector<std::uint32_t> update(const MembershipUpdate& membership_update);
  bool is_in_place() const;
  bool is_here(std::uint32_t trainer) const;
  /// Who waits now.
  TrainerWaits waits() const;

  /// Held open until the trainer's goodbye; its end is how a client notices a server that is gone.
  void attend(std::uint32_t trainer, Respond respond);
  void goodbye(std::uint32_t trainer);
  void lost(std::uint32_t trainer, std::uint64_t incarnation);
  /// The trainer's connection has ended, and it may come back. True when it is away now.
  bool leave_for_now(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t connection);
  /// It was given time to come back: it is lost when it has not. True then.
  bool give_up(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t connection);
  /// values: none for a barrier, the addends for all_reduce, values_of() for begin_epoch. number:
  /// as the trainer counts its calls of the kind, which makes it the same call when it comes again;
  /// 0 where it does not.
  void gather(Kind kind, std::uint32_t trainer, std::vector<double> values, Respond respond,
              std::uint64_t number = 0);
  void push(Contribution contribution);
  /// What push() will come with: answered with what Hooks::measure_step makes of the step.
  void measure(Contribution contribution);
  /// By Hooks::apply_step: the step is in the tables.
  void count(const std::vector<Contribution>& step);

  // Where trainers do not wait for each other.

  /// From here on the trainer's steps count, until leave_epoch().
  /// Throws: Error(network) when another process has come for the trainer.
  void begin_counted(const ClientId& from, std::uint64_t number, const wire::BeginEpoch& epoch);
  /// A push that is about to be applied: `keep` is called, and the steps of `threads` count.
  /// Throws: Error(network), before that, when another process has come for a trainer whose steps count.
  void count_push(const ClientId& from, std::span<const std::uint32_t> threads,
                  const std::function<void()>& keep);
  /// It was refused.
  void discount_push(std::uint32_t trainer, std::span<const std::uint32_t> threads);
  /// epoch: the trainer's number of it; one that is over changes nothing. 0: the one under way.
  void leave_epoch(const Participant& participant, std::uint64_t epoch = 0);
  /// Fails everything that waits and everything that would have to. Who takes part in the epoch stays: a
  /// checkpoint may be under way, and the next server goes on from it.
  void close();

  // For checkpoints and recovery, before the first request: nothing is answered and nothing kept.

  /// Calls `with` with all that is to be restored, while nothing happens here.
  void describe(const std::function<void(const Bytes&)>& with) const;
  void restore(Reader& in);
  void replay(const BarrierEvent& event);
  /// The server was started again: who was here is away. Returns who that is.
  std::vector<ClientId> go_on();
  bool are_all_done() const;

 private:
  struct Completed {
    std::uint64_t number = 0;
    std::shared_ptr<Outcome> outcome;  // shared by the trainers of the round
    std::size_t values = 0;
  };
  using Answers = std::vector<std::function<void()>>;

  /// The error that keeps anyone from waiting at a barrier now.
  std::optional<Error> obstacle() const;
  Error gone_text(std::uint32_t trainer) const;
  void fail_waiting(const Error& error, Answers& answers);
  /// Forgets what a trainer waits for, and tells it `error`.
  void drop(std::uint32_t trainer, const Error& error, Answers& answers);
  void complete_rounds(Answers& answers);
  void complete_round(Kind kind, BarrierRounds::Round round, Answers& answers);
  void keep(const BarrierEvent& event) const {
    if (hooks_.keep) hooks_.keep(event);
  }
  void keep_round(Kind kind, const BarrierRounds::Round& round) const;
  void check_nobody_ended_early() const;
  void begin_epoch(const BarrierRounds::Round& round);
  void join_epoch(std::uint32_t trainer, std::uint32_t threads, std::uint64_t number);
  void come(const Newcomer& newcomer, bool succeeds, std::uint64_t before, Answers& answers);
  void forget(std::uint32_t trainer);
  bool goes_on(std::uint32_t trainer) const;
  bool is_current(const ClientId& from) const;
  std::vector<Respond> drop_waiting(std::uint32_t trainer);
  Outcome earlier_outcome(Kind kind, std::uint32_t trainer, std::uint64_t number) const;
  void give_up_on(std::uint32_t trainer, Answers& answers);
  void give(const Answers& answers) const;
  std::optional<Error> obstacle_of(const Contribution& contribution) const;
  void complete_measures(Answers& answers);
  void apply_complete_steps(std::unique_lock<std::mutex>& lock);
  /// Completes what can be completed, then gives the answers with the lock released.
  void settle(std::unique_lock<std::mutex>& lock, Answers answers = {});

  std::string server_;
  Hooks hooks_;
  mutable std::mutex mutex_;
  bool closed_ = false;
  TrainerRegistry trainer_registry_;
  std::map<std::uint32_t, Respond> attending_;
  std::array<BarrierRounds, kKinds> barrier_rounds_;
  std::array<std::map<std::uint32_t, Completed>, kKinds> completed_;  // by trainer, its last
  SumHistory sums_;  // where another process may ask for them
  SyncEpoch epoch_;
  CountedEpochs counted_;
  std::vector<std::function<void()>> when_applied_;  // the step that is being applied
};

}  // namespace fleetrun::ps
