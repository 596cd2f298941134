// Rows by key: open addressing in 64 shards, each with a lock of its own.
//
// A shard's index has 16-byte slots {key, row}; rows lie in slabs (ps/row_arena.h) that never move:
//
//   row:  values[width] | optimizer state | steps (one word, adam only) | padding to 16 bytes
//
// A batch is sorted by shard first, so that each lock is taken once; within a shard, keys go through in
// blocks: fetch the index slots, find (or make) the rows and fetch them, then read or update them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "ps/initializer.h"
#include "ps/row_arena.h"
#include "ps/table_config.h"
#include "ps/update_rule.h"

namespace fleetrun::ps {

/// Threads: all calls may be made from several threads at once; a batch is not one atomic step for the
/// others, a row is.
class SparseTable {
 public:
  static constexpr std::size_t kShards = 64;

  /// `config` must be that of a sparse table.
  explicit SparseTable(const TableConfig& config);

  const TableConfig& config() const noexcept { return config_; }

  /// Copies the row of each key to rows[keys.size(), width]; an unknown key gets a row first.
  void pull(std::span<const std::uint64_t> keys, float* rows);
  /// One update per key with gradients[keys.size(), width]; an unknown key gets a row first. Keys are meant
  /// to be distinct; the gradients of equal ones are applied one after the other.
  void push(std::span<const std::uint64_t> keys, const float* gradients);
  /// Past the rule, for a copy that follows a server (geo): adds changes[keys.size(), width] to the values, or replaces
  /// them. An unknown key gets a row first.
  void add(std::span<const std::uint64_t> keys, const float* changes);
  void assign(std::span<const std::uint64_t> keys, const float* values);
  std::uint64_t rows() const;

  /// Floats of a row as visit() shows and insert() takes it: values, state, and the step word's bits.
  std::size_t row_floats() const noexcept { return row_floats_; }
  /// Calls `take` with every row of a shard in key order, under the shard's lock.
  void visit(std::size_t shard,
             const std::function<void(std::uint64_t key, std::span<const float> row)>& take) const;
  /// Adds or replaces a row. `row` has row_floats() floats.
  void insert(std::uint64_t key, std::span<const float> row);

 private:
  static constexpr std::uint32_t kNoRow = 0xffffffff;
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t row = kNoRow;
  };
  struct alignas(64) Shard {
    mutable std::mutex mutex;
    std::vector<Slot> slots;
    std::vector<float*> slabs;
    std::uint32_t rows = 0;
  };
  struct Batch;

  static std::size_t shard_of(std::uint64_t hash) noexcept { return hash >> 58; }
  float* row_at(const Shard& shard, std::uint32_t row) const noexcept {
    return shard.slabs[row >> slab_shift_] + (row & ((std::uint32_t{1} << slab_shift_) - 1)) * stride_;
  }
  /// The row of `key`, made when there is none; `initialize` false leaves a new row's floats to the caller.
  float* find_or_add(Shard& shard, std::uint64_t key, std::uint64_t hash, bool initialize);
  float* add_row(Shard& shard);
  static void grow(Shard& shard);
  void update(float* row, const float* gradient) const noexcept;
  template <class Act>
  void for_rows(std::span<const std::uint64_t> keys, Act act);

  TableConfig config_;
  Updater updater_;
  RowInitializer initializer_;
  std::size_t width_;
  std::size_t state_floats_;
  std::size_t row_floats_;
  std::size_t stride_;
  unsigned slab_shift_;
  RowArena arena_;
  std::array<Shard, kShards> shards_;
};

}  // namespace fleetrun::ps
