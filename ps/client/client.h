// A trainer's view of all servers together: pull values, push gradients, meet the other trainers.
//
// Made by ps/rpc/connect.h (over gRPC) or ps/memory/in_process.h (servers in this process, for one-process
// runs and tests); this header knows neither. Duplicate keys are fine everywhere: a pull fills each position,
// a push adds the gradients of equal keys up before the one update.
//
// Nothing is silent: a gradient that is NaN or infinite is Error(data) and nothing of that push is sent; a
// dense table that nobody has set or loaded is Error(config) on pull and push, not zeros; a trainer that goes
// without goodbye() (its client is destroyed, its process dies) fails every barrier, sum, epoch and
// synchronous step that waits for it, with Error(network) naming it; in a job where trainers come and go,
// these go on without it as soon as the servers hear of the world without it.
//
// Threads: all calls may be made from several threads at once. Spans given to an *_async call must stay valid
// until its Pending was waited for or destroyed (the destructor waits). Throws: Error(network) naming the
// server ("server 0 at 127.0.0.1:40001 is gone …") within seconds when a server dies; Error(config) when a
// server refuses because the two sides disagree (it names both).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ps/base/encoding.h"
#include "ps/base/staleness_counts.h"
#include "ps/base/stored_rows.h"
#include "ps/base/table_config.h"
#include "ps/saving/manifest.h"

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

/// No trainer thread.
inline constexpr std::uint32_t kNoThread = 0xffffffff;
/// The step of a thread that leaves (Client::keep_pace).
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
  std::uint32_t thread = 0;
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

/// How long a call may take before it fails with Error(timeout) naming the server that has not answered; 0:
/// for ever. What waits for other trainers (barriers, sums, epochs, pushes in sync mode) has no deadline.
struct Deadlines {
  /// Pulls, and pushes that do not wait for others.
  std::chrono::milliseconds data{0};
  /// Saving and loading: each of the requests of which they are made.
  std::chrono::milliseconds saving{0};
};

struct ClientOptions {
  std::uint32_t trainer = 0;
  std::uint32_t trainers = 1;
  Mode mode = Mode::async;
  std::vector<TableConfig> tables;
  /// Of the world that this trainer knows (launcher/run/world_feed), and the launcher that it belongs to.
  std::uint64_t generation = 0;
  std::string launcher = {};
  /// Not 0: a trainer that is started again with the same number, unlike that of any other, is the same to
  /// the servers as before, and goes on at next_change(). 0: it is another one each time.
  std::uint64_t identity = 0;
  /// How rows and gradients travel; what shortening cuts off gradients is added to later ones
  /// (ps/client/error_feedback.h).
  Encodings encodings = {};
  Deadlines deadlines = {};
};

class Client {
 public:
  virtual ~Client() = default;

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

  /// First values of a dense table; the optimizer state is reset.
  virtual void set_dense(std::uint32_t table, std::span<const float> values) = 0;

  /// sync mode: an epoch has a fixed set of participants, each trainer's threads 0 … threads-1.
  /// begin_pass returns when every trainer that has not said goodbye has begun; leave_pass says that this
  /// thread will push no more in it. async mode: both do nothing.
  virtual void begin_pass(std::uint32_t threads) = 0;
  virtual void leave_pass(std::uint32_t thread) = 0;

  /// Returns when every trainer that has not said goodbye has called it as often as this one.
  virtual void barrier() = 0;
  /// Adds `values` up over all trainers, in trainer order, in place; a barrier. The sizes must agree.
  virtual void all_reduce_sum(std::span<double> values) = 0;

  /// Every server writes (reads) its part of all tables below `directory` on its own host; whole or not at
  /// all. Trainers that save at the same time do so one after the other. load takes what any number of
  /// servers has saved, the save before the newest one where that is damaged; it returns what is wrong with
  /// the newest one then. A save beside pushes holds each of them on all servers or on none. Throws:
  /// Error(host) when a file cannot be written, Error(data) naming the file that is missing or damaged,
  /// Error(config) when a save is of other tables.
  virtual void save(const std::string& directory, SaveMode mode = SaveMode::all) = 0;
  virtual std::string load(const std::string& directory) = 0;
  /// What one server holds, as a checkpoint that Paddle 2.6.2 loads (ps/saving/paddle_checkpoint.h), which
  /// load() takes too. Throws: as save; Error(config) with several servers.
  virtual void save_for_paddle(const std::string& directory, SaveMode mode) = 0;

  /// Rows of a sparse table over all servers.
  virtual std::uint64_t rows(std::uint32_t table) = 0;

  /// Rows as they are stored, each server's of those keys; none is made.
  /// Of a dense table, without keys, its values.
  virtual StoredRows get(std::uint32_t table, std::span<const std::uint64_t> keys) = 0;
  /// Ends a day of a sparse table whose accessor keeps statistics: shows and clicks decay, and what has
  /// expired is erased. Returns how many rows went; none of a server that had done it
  /// before it was killed and started again.
  virtual std::uint64_t shrink(std::uint32_t table) = 0;
  /// What each server has done so far, by rank: JSON as ps/server/stat_json.h says.
  virtual std::vector<std::string> stat() = 0;

  /// Whether this trainer came while others were training:
  /// it pulls what they have, and meets them from their next barrier on.
  virtual bool is_late() const noexcept = 0;
  /// Pushes, set_dense and shrink together are numbered from 1. Those before this one have been applied by
  /// every server; with ClientOptions::identity, some of it and after may have been by some servers: repeat
  /// them, from this one on, and what was applied already changes nothing.
  virtual std::uint64_t next_change() const noexcept { return 1; }
  /// sync mode, without an identity: this trainer was started again, goes on for the process before it, and
  /// its script has not come to where that one ended. Until then what was complete is so at once: barriers,
  /// sums (with the results of before), epochs, pushes in an epoch;
  /// set_dense, load, save and shrink do nothing.
  virtual bool is_catching_up() const { return false; }
  /// Within an epoch: how many steps of the thread all servers had before this trainer was started again;
  /// kWholeEpoch: all that it has. They need not be computed:
  /// the thread's next push is the one after them. 0 for a trainer that was not.
  virtual std::uint64_t skip_steps(std::uint32_t thread) {
    static_cast<void>(thread);
    return 0;
  }
  static constexpr std::uint64_t kWholeEpoch = ~std::uint64_t{0};
  /// The trainer has heard of a newer world.
  virtual void set_generation(std::uint64_t generation) noexcept = 0;

  /// This trainer is done. When all have said so, the servers end by themselves.
  virtual void goodbye() = 0;
};

}  // namespace fleetrun::ps
