// What a trainer's steps ask of the servers: values, and where gradients go.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ps/base/staleness_counts.h"

namespace fleetrun::ps {

/// rows[keys.size(), pulled_width(table)], row-major: values, with show and click before them in a ctr table.
struct SparsePull {
  std::uint32_t table = 0;
  std::span<const std::uint64_t> keys;
  std::span<float> rows;
};
/// values[width of the dense table].
struct DensePull {
  std::uint32_t table = 0;
  std::span<float> values;
};
/// gradients[keys.size(), width]. A table with statistics (TableConfig::accessor) counts shows and clicks,
/// one number a position, those of equal keys added up; one show and no click each where they are empty.
struct SparsePush {
  std::uint32_t table = 0;
  std::span<const std::uint64_t> keys;
  std::span<const float> gradients;
  std::span<const float> shows = {};
  std::span<const float> clicks = {};
  /// What the keys' rows note as their slot.
  std::uint16_t slot = 0;
};
struct DensePush {
  std::uint32_t table = 0;
  std::span<const float> gradients;
};

/// What a trainer's epoch is over.
struct EpochStart {
  EpochStart(std::uint32_t its_threads, std::uint64_t its_data = 0) : threads(its_threads), data(its_data) {}
  std::uint32_t threads;
  /// Tells its batches and their order apart from other epochs'; 0 where they may differ in another run.
  std::uint64_t data;
};

/// No trainer thread.
inline constexpr std::uint32_t kNoThread = 0xffffffff;
/// The step of a thread that leaves (keep_pace).
inline constexpr std::uint64_t kLeavesBound = ~std::uint64_t{0};

/// All tables of one step travel together: one request per server.
struct Pull {
  std::vector<SparsePull> sparse;
  std::vector<DensePull> dense;
  /// False: an unknown key gets no row; it gives the values that a new one would have.
  /// For those who only look.
  bool create = true;
  /// The trainer thread that computes the gradients of its next push from these values;
  /// kNoThread for everybody else.
  std::uint32_t thread = kNoThread;
};
struct Push {
  /// The trainer thread that pushes; in sync mode (trainer, thread) is the participant.
  /// kNoThread: it is no step.
  std::uint32_t thread = 0;
  /// Of several pushes in one: the thread of each; empty otherwise.
  std::vector<std::uint32_t> threads = {};
  std::vector<SparsePush> sparse;
  std::vector<DensePush> dense;
};

/// Rows of sparse tables as the servers have them now, each key once.
struct TouchedRows {
  struct Table {
    std::uint32_t table = 0;
    std::vector<std::uint64_t> keys;
    std::vector<float> rows;
  };
  std::vector<Table> tables;
  /// There are more: ask again.
  bool more = false;
  /// A server cannot say what this trainer has missed, because it is another one than before, or has loaded
  /// other tables: pull anew what matters. True in the first answer.
  bool forgot = false;
};

/// A call in flight.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Blocks until every server has answered. Throws the call's error; may be called once.
  virtual void wait() = 0;
};

class StepClient {
 public:
  virtual ~StepClient() = default;

  virtual std::unique_ptr<Pending> pull_async(const Pull& request) = 0;
  /// async mode: done when every server has applied it. sync mode: done when the step has been applied, that
  /// is, when every participant of the epoch has pushed it or left the epoch; one push at a time per
  /// participant.
  virtual std::unique_ptr<Pending> push_async(const Push& request) = 0;
  void pull(const Pull& request) { pull_async(request)->wait(); }
  void push(const Push& request) { push_async(request)->wait(); }

  /// geo mode: the rows that other trainers' pushes have changed since this client's last call;
  /// from its first one on.
  virtual TouchedRows pull_touched() = 0;

  /// How stale this trainer's pushes were, over all servers, since the last call.
  virtual StalenessCounts take_staleness() = 0;
  /// Returns when this thread may begin `step`, counted from 0: when no thread that takes part is more than
  /// `bound` steps behind. kLeavesBound: it takes part no more.
  virtual void keep_pace(std::uint32_t thread, std::uint64_t step, std::uint64_t bound) = 0;

  /// What tables whose rule is scheduled multiply their learning rate by, from the next push on: 1 until it
  /// is said. In sync mode all trainers say the same.
  virtual void set_rate(float rate) noexcept = 0;

  /// sync mode: an epoch has a fixed set of participants, each trainer's threads 0 … threads-1.
  /// begin_epoch returns when every trainer that has not said goodbye has begun; leave_epoch says that this
  /// thread will push no more in it. Other modes: nobody waits; where counts_epochs(), the
  /// servers count the steps of an epoch whose data are known.
  virtual void begin_epoch(const EpochStart& epoch) = 0;
  virtual void leave_epoch(std::uint32_t thread) = 0;
  /// Whether a trainer that is started again goes on in the middle of an epoch:
  /// each thread must have the same batches in both runs.
  virtual bool counts_epochs() const noexcept { return false; }
  /// Whether the epoch that was under way when this trainer was started again is not gone on with: the one
  /// that has begun since is over other data.
  virtual bool has_left_epoch() const noexcept { return false; }

  /// Within an epoch: how many steps of the thread all servers had before this trainer was started again;
  /// kWholeEpoch: all that it has. They need not be computed:
  /// the thread's next push is the one after them. 0 for a trainer that was not.
  virtual std::uint64_t skip_steps(std::uint32_t thread) {
    static_cast<void>(thread);
    return 0;
  }
  /// How many steps of the thread from there on some servers have, and others not.
  virtual std::uint64_t steps_ahead(std::uint32_t thread) const {
    static_cast<void>(thread);
    return 0;
  }
  /// Whether a push must not be made one with others: there are such steps.
  virtual bool pushes_alone() const { return false; }
  static constexpr std::uint64_t kWholeEpoch = ~std::uint64_t{0};
};

}  // namespace fleetrun::ps
