// How a trainer that was started again catches up: it runs its script from the beginning, and what the
// process before it had done there is done. The servers say how much that is; in the epoch that was under way
// they may differ by a step. A script may also begin later than the one before, as one does that reads what
// days are left: its epochs are known by their data.
#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "ps/base/greeting.h"

namespace fleetrun::ps {

/// Threads: all calls may be made from several threads at once.
class FastForward {
 public:
  /// More steps than any epoch has.
  static constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

  /// What the process before had complete; the numbers begin at 1, and count what all servers together have.
  struct Done {
    std::uint64_t barriers = 0, sums = 0, epochs = 0;
    /// By server: its last epoch, and there the steps of each thread.
    struct Epoch {
      std::uint64_t number = 0;
      std::vector<std::uint64_t> steps = {};
    };
    std::vector<Epoch> servers = {};
    /// By epoch, where the servers keep them.
    std::vector<wire::EpochMark> marks = {};
    /// The last of them was not completed.
    bool is_cut = false;
  };
  /// An epoch that begins now.
  struct Begun {
    std::uint64_t number = 0;
    /// The servers know of it.
    bool is_known = false;
    /// How many barriers and sums the trainer counts from here on as complete.
    std::uint64_t barriers = 0, sums = 0;
    /// It is over other data than the epoch that was under way, which the script does not go on with.
    bool leaves_cut = false;
  };

  explicit FastForward(Done done) : done_(std::move(done)) {}

  /// Whether there is nothing to catch up with, from the beginning.
  bool is_idle() const noexcept { return done_.barriers == 0 && done_.sums == 0 && done_.epochs == 0; }
  /// Whether the script has not come to the place yet where the process before it ended.
  bool is_under_way() const;

  /// The script's next barrier, sum or epoch has this number; whether it was complete before.
  bool barrier(std::uint64_t number);
  bool sum(std::uint64_t number);
  /// data: as wire::EpochMark::data; 0 stands for any.
  /// Throws: Error(config) when the epoch was under way with another number of threads.
  Begun begin_epoch(std::uint64_t number, std::uint32_t threads, std::uint64_t data = 0);

  /// The steps of the thread in this epoch that are on all servers, or kAll:
  /// the next step is the one after them.
  std::uint64_t skip_steps(std::uint32_t thread);
  /// How many steps of the thread that are still to come in this epoch some server has already.
  std::uint64_t steps_ahead(std::uint32_t thread) const;
  /// Whether there are any, of any thread.
  bool is_ahead_somewhere() const;
  /// The thread's next step in this epoch, from 1.
  std::uint64_t next_step(std::uint32_t thread);
  /// Whether a server has had that step from the process before.
  bool has(std::uint32_t server, std::uint32_t thread, std::uint64_t step) const;
  bool is_everywhere(std::uint32_t thread, std::uint64_t step) const;

 private:
  void find_counted(std::uint64_t data, Begun& begun);
  std::uint64_t steps_of(const Done::Epoch& server, std::uint32_t thread) const;
  std::uint64_t steps_everywhere(std::uint32_t thread) const;
  std::uint64_t ahead_of(std::uint32_t thread) const;

  const Done done_;
  mutable std::mutex mutex_;  // guards what follows
  std::uint64_t barriers_ = 0, sums_ = 0, epochs_ = 0;
  std::vector<std::uint64_t> steps_;  // by thread, in this epoch
};

}  // namespace fleetrun::ps
