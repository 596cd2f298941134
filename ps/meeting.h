// Where trainers meet on a server: who is there, barriers, sums, passes and the steps of sync mode.
//
// Nobody polls: the last to arrive completes a round, or applies a step, and answers all the others. When a
// trainer is lost without a goodbye everyone who waits for it gets Error(network) naming it; in a job where trainers come
// and go they wait until the job's next world says that it is gone (update()), and go on without it.
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

#include "ps/gathering.h"
#include "ps/outcome.h"
#include "ps/roster.h"
#include "ps/sync_pass.h"

namespace fleetrun::ps {

/// Threads: all calls may be made from several threads at once; answers are given without the lock held.
class Meeting {
 public:
  struct Hooks {
    /// Applies one step, the pushes in the order (trainer, thread); may throw Error.
    std::function<void(const std::vector<Contribution>&)> apply_step;
    /// All trainers have said goodbye.
    std::function<void()> all_done;
  };
  enum class Kind { barrier, all_reduce, begin_pass };

  Meeting(std::string server, std::uint32_t trainers, Hooks hooks, std::uint64_t epoch = 0);

  /// Throw: as Roster does.
  bool hello(const Newcomer& newcomer);
  bool hello(std::uint32_t trainer, std::uint64_t incarnation) { return hello({trainer, incarnation}); }
  void require(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t epoch = 0) const;
  bool is_stale(std::uint32_t trainer, std::uint64_t epoch) const;
  /// A new world of the job. Returns the trainers that are gone with it.
  std::vector<std::uint32_t> update(const Attendance& attendance);
  bool is_in_place() const;
  bool is_here(std::uint32_t trainer) const;

  /// Held open until the trainer's goodbye; its end is how a client notices a server that is gone.
  void attend(std::uint32_t trainer, Respond respond);
  void goodbye(std::uint32_t trainer);
  void lost(std::uint32_t trainer, std::uint64_t incarnation);
  /// values: none for a barrier, the addends for all_reduce, the number of threads for begin_pass.
  void gather(Kind kind, std::uint32_t trainer, std::vector<double> values, Respond respond);
  void push(Contribution contribution);
  void leave_pass(const Participant& participant);
  /// Fails everything that waits and everything that would have to.
  void close();

 private:
  using Answers = std::vector<std::function<void()>>;

  /// The error that keeps anyone from meeting now.
  std::optional<Error> obstacle() const;
  Error gone_text(std::uint32_t trainer) const;
  void fail_waiting(const Error& error, Answers& answers);
  /// Forgets what a trainer waits for, and tells it `error`.
  void drop(std::uint32_t trainer, const Error& error, Answers& answers);
  void complete_gatherings(Answers& answers);
  void complete_round(Kind kind, Gathering::Round round, Answers& answers);
  void apply_complete_steps(std::unique_lock<std::mutex>& lock);
  /// Completes what can be completed, then gives the answers with the lock released.
  void settle(std::unique_lock<std::mutex>& lock, Answers answers = {});

  std::string server_;
  Hooks hooks_;
  mutable std::mutex mutex_;
  bool closed_ = false;
  Roster roster_;
  std::map<std::uint32_t, Respond> attending_;
  std::array<Gathering, 3> gatherings_;
  SyncPass pass_;
};

}  // namespace fleetrun::ps
