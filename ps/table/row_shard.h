// The rows of one shard in memory: where they lie, and which key has which. Rows are numbered; a number is
// used again once its row was removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ps/table/row_arena.h"
#include "ps/table/row_index.h"

namespace fleetrun::ps {

/// How rows lie in slabs: the key, then the floats, at a stride of whole 8 bytes.
struct RowPlaces {
  explicit RowPlaces(std::size_t row_floats);

  std::size_t stride = 0;
  unsigned slab_shift = 0;
  std::size_t slab_floats() const noexcept { return stride << slab_shift; }
};

/// Threads: one at a time; the arena is shared by all shards.
class RowShard {
 public:
  static constexpr std::uint32_t kNone = RowIndex::kNone;
  static constexpr std::size_t kKeyFloats = sizeof(std::uint64_t) / sizeof(float);

  RowShard(RowArena& arena, const RowPlaces& places) : arena_(&arena), places_(places) {}

  std::uint64_t size() const noexcept { return index_.size(); }
  /// Numbers from here on have not been used.
  std::uint32_t end() const noexcept { return end_; }
  /// Of the index and what else is kept per row outside the slabs.
  std::size_t bytes() const noexcept {
    return index_.bytes() + (slabs_.capacity() + live_.capacity()) * 8 +
           free_.capacity() * sizeof(std::uint32_t);
  }

  float* at(std::uint32_t row) const noexcept { return place(row) + kKeyFloats; }
  std::uint64_t key_at(std::uint32_t row) const noexcept {
    std::uint64_t key;
    std::memcpy(&key, place(row), sizeof key);
    return key;
  }
  bool is_live(std::uint32_t row) const noexcept { return (live_[row / 64] >> (row % 64) & 1) != 0; }
  /// A bit per number: whether it has a row.
  const std::vector<std::uint64_t>& live() const noexcept { return live_; }

  void prefetch_index(std::uint64_t hash) const noexcept { index_.prefetch(hash); }
  /// A row that may be that of the key, with its first `bytes` (key included) being fetched;
  /// kNone when there is none.
  std::uint32_t prefetch_row(std::uint64_t hash, std::size_t bytes) const noexcept {
    const std::uint32_t row = index_.guess(hash);
    if (row == kNone) return row;
    const char* from = reinterpret_cast<const char*>(place(row));
    for (std::size_t byte = 0; byte < bytes; byte += 64) __builtin_prefetch(from + byte, 1);
    __builtin_prefetch(from + bytes - 1, 1);
    return row;
  }
  std::uint32_t find(std::uint64_t hash, std::uint64_t key) const {
    return index_.find(hash, key, [this](std::uint32_t row) { return key_at(row); });
  }
  /// A row for a key that has none; its floats are the caller's to fill.
  /// Throws: std::bad_alloc; nothing has changed.
  std::uint32_t add(std::uint64_t hash, std::uint64_t key);
  void remove(std::uint64_t hash, std::uint32_t row);

 private:
  float* place(std::uint32_t row) const noexcept {
    return slabs_[row >> places_.slab_shift] +
           (row & ((std::uint32_t{1} << places_.slab_shift) - 1)) * places_.stride;
  }
  std::uint32_t take_number();
  void grow_index();

  RowArena* arena_;
  RowPlaces places_;
  RowIndex index_;
  std::vector<float*> slabs_;
  std::vector<std::uint64_t> live_;
  std::vector<std::uint32_t> free_;
  std::uint32_t end_ = 0;
};

}  // namespace fleetrun::ps
