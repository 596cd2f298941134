// The rows of a sparse table as they were when SparseTable::begin_cut() was called, read while pulls and
// pushes go on. Nothing is copied at the beginning: each shard gets a bitmap of the rows that are still to be
// read, and whoever changes or erases one of them first keeps its bytes aside.
// Cold rows come from a view of their store.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ps/table/cold_rows.h"
#include "ps/table/sparse_table.h"

namespace fleetrun::ps {

/// Threads: read() of one shard by one thread at a time, of different shards at once. Reading takes a shard's
/// lock for about a thousand rows at a time.
class SparseCut {
 public:
  ~SparseCut();
  SparseCut(const SparseCut&) = delete;
  SparseCut& operator=(const SparseCut&) = delete;

  /// Rows that the table had, whatever its mode leaves out.
  std::uint64_t rows() const noexcept { return rows_; }
  /// Fills `block` with the next rows of a shard that the cut's mode saves (should_save()), in no particular
  /// order, row_floats() floats each. False, with an empty block, after the last one.
  bool read(std::size_t shard, ColdBlock& block);
  /// What admission had counted.
  const std::vector<std::uint64_t>& admission_words(std::size_t shard) const noexcept;
  /// The keys whose rows have gone in the cut's window, rising.
  const std::vector<std::uint64_t>& erased(std::size_t shard) const noexcept;

  /// Whether settle() changes anything.
  bool changes_rows() const noexcept;
  /// In the place of read(), where only settle() is to follow.
  void pass_over();
  /// Rows of one shard that settle() has changed, and the statistics with which they were saved.
  using Settled = std::function<void(std::span<const std::uint64_t> keys, std::span<const Statistics> saved)>;
  /// Changes the statistics of the rows that were read as a durable save in this mode does (note_saved()).
  /// Call it once, after all were read. `tell` hears of the rows in memory, for
  /// SparseTable::note_saved_rows() of a copy that does not know this cut.
  void settle(const Settled& tell = {});

 private:
  friend class SparseTable;
  SparseCut(SparseTable& table, SaveMode mode, const ChangeWindow& window);
  void begin_shard(std::size_t index);
  bool read_memory(std::size_t shard, ColdBlock& block);
  bool read_cold(std::size_t shard, ColdBlock& block);
  void take(std::size_t shard, std::uint64_t key, const float* floats, ColdBlock& block);
  void settle_shard(std::size_t shard, const Settled& tell);

  SparseTable& table_;
  SaveMode mode_;
  ChangeWindow window_;
  std::uint64_t rows_ = 0;
  std::unique_ptr<ColdView> cold_;
  std::vector<std::unique_ptr<SparseTable::CutShard>> shards_;
};

}  // namespace fleetrun::ps
