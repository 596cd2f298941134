// What a cut knows of one shard; shared by the table, which keeps rows aside, and the cut, which reads.
#pragma once

#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "ps/sparse_table.h"

namespace fleetrun::ps {

/// Guarded by the shard's lock, but for what only the reader uses.
struct SparseTable::CutShard {
  /// The statistics of a row that was read, for settle().
  struct Saved {
    std::uint32_t row;
    std::uint64_t key;
    Statistics statistics;
  };

  std::vector<std::uint64_t> pending;    // rows to be read where they lie
  std::vector<std::uint64_t> unchanged;  // rows that nobody has changed since
  std::unordered_map<std::uint32_t, std::size_t> kept_at;
  std::vector<std::uint64_t> kept_keys;
  std::vector<float> kept_rows;
  std::vector<std::uint64_t> admission;

  std::uint32_t next = 0;       // reader: the row from which to go on
  bool memory_is_read = false;  // reader
  std::uint64_t cold_from = 0;  // reader: the key from which to go on
  bool cold_is_read = false;    // reader
  std::vector<Saved> saved;     // reader

  bool is_pending(std::uint32_t row) const noexcept {
    return row / 64 < pending.size() && (pending[row / 64] >> (row % 64) & 1) != 0;
  }
  void clear_pending(std::uint32_t row) noexcept { pending[row / 64] &= ~(std::uint64_t{1} << (row % 64)); }

  /// Before a row changes.
  void keep(std::uint32_t row, std::uint64_t key, const float* floats, std::size_t count) {
    if (row / 64 < unchanged.size()) unchanged[row / 64] &= ~(std::uint64_t{1} << (row % 64));
    if (!is_pending(row)) return;
    kept_rows.insert(kept_rows.end(), floats, floats + count);
    kept_keys.push_back(key);
    kept_at.emplace(row, kept_keys.size() - 1);
    clear_pending(row);
  }
};

}  // namespace fleetrun::ps
