// What a cut knows of one shard; shared by the table, which keeps rows aside, and the cut, which reads.
#pragma once

#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ps/table/sparse_table.h"

namespace fleetrun::ps {

/// Guarded by the shard's lock, but for what only the reader uses.
struct SparseTable::CutShard {
  /// The statistics of a row that was read, for settle().
  struct Saved {
    std::uint64_t key;
    Statistics statistics;
  };

  std::vector<std::uint64_t> pending;           // rows to be read where they lie
  bool ages = false;                            // settle() makes rows a day older that nobody has seen since:
  std::vector<std::uint64_t> unseen;            // those in memory
  std::unordered_set<std::uint64_t> seen_cold;  // cold rows that are not among them
  std::unordered_map<std::uint32_t, std::size_t> kept_at;
  std::vector<std::uint64_t> kept_keys;
  std::vector<float> kept_rows;
  std::vector<std::uint64_t> admission;
  std::vector<std::uint64_t> erased;        // in the cut's window, rising
  std::vector<std::uint64_t> changed_cold;  // cold rows that changed in it, rising

  std::uint32_t next = 0;       // reader: the row from which to go on
  bool memory_is_read = false;  // reader
  std::uint64_t cold_from = 0;  // reader: the key from which to go on
  bool cold_is_read = false;    // reader
  std::vector<Saved> saved;     // reader

  bool is_pending(std::uint32_t row) const noexcept {
    return row / 64 < pending.size() && (pending[row / 64] >> (row % 64) & 1) != 0;
  }
  void clear_pending(std::uint32_t row) noexcept { pending[row / 64] &= ~(std::uint64_t{1} << (row % 64)); }
  bool is_unseen(std::uint32_t row) const noexcept {
    return row / 64 < unseen.size() && (unseen[row / 64] >> (row % 64) & 1) != 0;
  }

  /// A push changes the row, or it goes.
  void see(std::uint32_t row) noexcept {
    if (row / 64 < unseen.size()) unseen[row / 64] &= ~(std::uint64_t{1} << (row % 64));
  }
  /// The row of the key leaves memory for the cold ones, before it does, …
  void go(std::uint32_t row, std::uint64_t key) {
    if (ages && !is_unseen(row)) seen_cold.insert(key);
  }
  /// … and one comes back.
  void come(std::uint32_t row, std::uint64_t key) {
    if (!ages || seen_cold.erase(key) != 0) return;
    if (row / 64 >= unseen.size()) unseen.resize(row / 64 + 1);
    unseen[row / 64] |= std::uint64_t{1} << (row % 64);
  }
  /// Before a row changes.
  void keep(std::uint32_t row, std::uint64_t key, const float* floats, std::size_t count) {
    if (!is_pending(row)) return;
    kept_rows.insert(kept_rows.end(), floats, floats + count);
    kept_keys.push_back(key);
    kept_at.emplace(row, kept_keys.size() - 1);
    clear_pending(row);
  }
};

}  // namespace fleetrun::ps
