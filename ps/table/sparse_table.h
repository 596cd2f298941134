// Rows by key, in 64 shards, each with a lock, an index (ps/table/row_index.h) and slabs of rows
// (ps/table/row_shard.h) of its own. A row is what ps/table/row_layout.h draws.
//
// A batch is sorted by shard first, so that each lock is taken once; within a shard every key goes through
// three stages some keys apart: its line of the index is fetched, then its row, then the row is read or
// updated. So a line is touched once, and many are on their way at once.
//
// A key without a row gets one by its first pull or push that may make it (TableConfig::admission), with the
// values of its initializer. Of a table with statistics a row has column 0 only until its score reaches
// accessor.embedx_threshold: then a push makes the others, whose gradients it drops.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "ps/base/table_config.h"
#include "ps/table/accessor.h"
#include "ps/table/admission.h"
#include "ps/table/changed_rows.h"
#include "ps/table/cold_rows.h"
#include "ps/table/initializer.h"
#include "ps/table/memory_budget.h"
#include "ps/table/row_arena.h"
#include "ps/table/row_clock.h"
#include "ps/table/row_layout.h"
#include "ps/table/row_shard.h"
#include "ps/table/update_rule.h"

namespace fleetrun::ps {

class SparseCut;

/// What a push says of its keys' statistics; ignored by tables without any.
struct PushStatistics {
  /// By key; one show and no click each when empty.
  std::span<const float> shows = {};
  std::span<const float> clicks = {};
  std::uint16_t slot = 0;
};

/// Counted since the table was made, but for the first three.
struct SparseMetrics {
  std::uint64_t rows = 0;  // cold ones too
  std::uint64_t cold_rows = 0;
  std::uint64_t bytes = 0;  // of memory: rows, index, free ones
  std::uint64_t pulled = 0;
  std::uint64_t pushed = 0;
  std::uint64_t created = 0;
  std::uint64_t erased = 0;
  std::uint64_t not_admitted = 0;  // pushes of keys that got no row
  std::uint64_t from_disk = 0;     // cold rows that came back
};

/// Threads: all calls may be made from several threads at once; a batch is not one atomic step for the
/// others, a row is. Throws: what the cold rows throw, where there are any.
class SparseTable : public Coolable {
 public:
  static constexpr std::size_t kShards = 64;

  /// `config` must be that of a sparse table.
  explicit SparseTable(const TableConfig& config, RowClock clock = seconds_now);
  ~SparseTable() override;

  const TableConfig& config() const noexcept { return config_; }
  const RowLayout& layout() const noexcept { return layout_; }

  /// Copies what a pull of each key gives to rows[keys.size(), pulled_width(config())]: values, and of a ctr
  /// table show and click before them. An unknown key gets a row first; with `create` false, or where it is
  /// not admitted, it gives the values that a new row would have.
  void pull(std::span<const std::uint64_t> keys, float* rows, bool create = true);
  /// One update per key with gradients[keys.size(), width]; an unknown key gets a row first, if it is
  /// admitted. Keys are meant to be distinct; the gradients of equal ones are applied one after the other.
  void push(std::span<const std::uint64_t> keys, const float* gradients,
            const PushStatistics& statistics = {}, float rate = 1.0f);
  /// Past the rule, for a copy that follows a server (geo): adds changes[keys.size(), width] to the values.
  /// An unknown key gets a row first.
  void add(std::span<const std::uint64_t> keys, const float* changes);
  /// Replaces the values of rows by values[keys.size(), width]; the rule's state is that of a new row, shows
  /// and clicks stay. An unknown key gets a row first, whatever admission says.
  void assign(std::span<const std::uint64_t> keys, const float* values);
  /// Returns how many of the keys had rows.
  std::uint64_t erase(std::span<const std::uint64_t> keys);
  /// Decays shows and clicks and erases what has expired, shard by shard on `threads` threads. Rows without
  /// statistics do not expire. Returns how many rows went.
  std::uint64_t shrink(unsigned threads = 1);

  /// Where a search for rows that are to expire by time has come.
  struct ExpiryPlace {
    std::size_t shard = 0;
    std::uint32_t row = 0;
    bool is_in_cold = false;
    std::uint64_t cold_from = 0;
    std::uint64_t seen = 0;  // rows so far, and shards
  };
  /// The keys of rows that nobody has touched for TableConfig::expire_seconds, among the next `rows` of them.
  /// `place` goes on to the next shard, and after the last one to the first.
  std::vector<std::uint64_t> find_expired(ExpiryPlace& place, std::size_t rows);
  /// How many rows find_expired() looks at in a round, places that have none among them.
  std::uint64_t expiry_round() const;
  /// Those of the keys whose rows are to expire now.
  std::vector<std::uint64_t> still_expired(std::span<const std::uint64_t> keys);

  /// Calls `take` for every key, under its shard's lock, with the row as it is (ps/table/row_layout.h), or
  /// nothing where there is none. No row is made, and nothing is counted.
  void look(std::span<const std::uint64_t> keys,
            const std::function<void(std::size_t position, std::span<const float> row)>& take);

  std::uint64_t rows() const;
  SparseMetrics metrics() const;

  /// Floats of a row as visit() shows and insert() takes it.
  std::size_t row_floats() const noexcept { return layout_.floats; }
  /// Calls `take` with every row of a shard that is in memory, in key order, under the shard's lock.
  void visit(std::size_t shard,
             const std::function<void(std::uint64_t key, std::span<const float> row)>& take) const;
  /// Adds or replaces a row. `row` has row_floats() floats.
  void insert(std::uint64_t key, std::span<const float> row);
  /// What admission has counted of a shard's keys,
  /// and adding that up with what is counted here (ps/table/admission.h).
  std::vector<std::uint64_t> admission_words(std::size_t shard) const;
  void merge_admission(std::size_t shard, std::span<const std::uint64_t> words,
                       const std::function<bool(std::uint64_t key)>& is_mine);

  /// The rows as they are now, to be read while pushes go on (ps/table/sparse_cut.h). Call it while none
  /// runs. The table must outlive it. With a window, only what has changed in it; the next one begins.
  /// Throws: Error(config) when not all that has gone since is known.
  std::unique_ptr<SparseCut> begin_cut(SaveMode mode = SaveMode::all, const ChangeWindow& window = {});
  /// What SparseCut::settle() has told, of rows that are in memory.
  void note_saved_rows(SaveMode mode, std::span<const std::uint64_t> keys, std::span<const Statistics> saved);

  /// Before the first row: where rows may go that memory has no room for, and who says when. Its row_floats()
  /// must be the table's; `budget` outlives the table.
  void attach(std::unique_ptr<ColdRows> cold, MemoryBudget& budget);
  /// Brings those of the keys that have cold rows into memory. Between it and a push of them, with
  /// budget.stay(), nothing of the push waits for the disk or can fail for its sake.
  void warm(std::span<const std::uint64_t> keys);
  std::size_t shards() const noexcept override { return kShards; }
  /// Only after attach(): of the next `rows` rows of a shard,
  /// those that were not used since the last time round go to the cold rows.
  bool cool(std::size_t shard, std::size_t rows) override;

 private:
  friend class SparseCut;
  struct CutShard;
  /// A row stays in memory for a round of the hand when it has been used so often since it came (a step is
  /// two: a pull and a push), or once since the hand passed it.
  /// Rows that come for one step only do not drive others out.
  static constexpr std::uint8_t kStays = 3;
  struct alignas(64) Shard {
    Shard(RowArena& arena, const RowPlaces& places, const Admission& admission)
        : rows(arena, places), gate(admission) {}

    mutable std::mutex mutex;
    RowShard rows;
    Gatekeeper gate;
    std::vector<CutShard*> cuts;
    ChangedRows changed;
    std::vector<std::uint8_t> uses;  // of each row, as far as cool() wants to know; only with cold rows
    std::uint32_t hand = 0;          // where cool() goes on
    SparseMetrics metrics;
  };
  struct Batch;

  static std::size_t shard_of(std::uint64_t hash) noexcept { return hash >> 58; }
  template <class Act>
  void for_keys(std::span<const std::uint64_t> keys, std::size_t prefetched, Act act);
  template <class Act>
  void for_shard_keys(std::size_t index, const Batch& batch, std::size_t prefetched, Act& act);
  template <class Act>
  void change_values(std::span<const std::uint64_t> keys, const Act& act);
  void put_out(std::size_t index, std::span<const std::uint32_t> rows);
  void put_out_unseen(std::size_t index);
  void bring_in(std::size_t index, const Batch& batch);
  void come_in(std::size_t index, std::span<const std::uint64_t> keys);

  std::uint32_t add_row(Shard& shard, std::uint64_t hash, std::uint64_t key);
  void make_new(std::uint64_t key, float* row) const noexcept;
  void reset_rule(float* row) const noexcept;
  std::size_t row_bytes() const noexcept;
  std::uint32_t take_row(Shard& shard, std::uint64_t hash, std::uint64_t key);
  void remove_row(Shard& shard, std::uint64_t hash, std::uint32_t row);
  void erase_row(Shard& shard, std::uint64_t hash, std::uint32_t row);
  void write_pulled(const float* row, float* out) const noexcept;
  void update(std::uint64_t key, float* row, const float* gradient, float show, float click,
              std::uint16_t slot, float rate) const noexcept;
  void update_part(std::size_t part, float* row, const float* gradient, float scale,
                   float rate) const noexcept;
  void note_saved(SaveMode mode, const Statistics& saved, float* row) const noexcept;
  void note_saved_row(Shard& shard, std::uint32_t row, SaveMode mode, const Statistics& saved);
  void keep_for_cuts(Shard& shard, std::uint32_t row) const;
  void before_change(Shard& shard, std::uint32_t row) const;
  std::uint32_t second_of_change() const { return layout_.touched == RowLayout::kNone ? 0 : clock_(); }
  static void go_to_next_shard(ExpiryPlace& place) noexcept;
  void write_touched(std::uint32_t second, float* row) const noexcept {
    if (layout_.touched != RowLayout::kNone) write_second(layout_, second, row);
  }
  bool has_expired(const float* row, std::uint32_t now) const noexcept;
  void see_for_cuts(Shard& shard, std::uint32_t row) const;
  void touch(Shard& shard, std::uint32_t row) const;
  std::uint64_t shrink_shard(std::size_t index);

  TableConfig config_;
  RowLayout layout_;
  RowClock clock_;
  std::vector<Updater> updaters_;  // by part of the layout
  RowInitializer initializer_;
  RowArena arena_;
  std::unique_ptr<ColdRows> cold_;
  MemoryBudget* budget_ = nullptr;  // with cold_
  std::vector<std::unique_ptr<Shard>> shards_;
  std::atomic<std::size_t> next_first_{0};  // the shard at which the next batch begins, modulo kShards
};

}  // namespace fleetrun::ps
