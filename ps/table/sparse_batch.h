// How a batch of keys goes through the shards of a sparse table.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "ps/table/sparse_table.h"

namespace fleetrun::ps {

// The positions of a batch, those of shard s at [begin[s], begin[s + 1]), in their order.
struct SparseTable::Batch {
  std::span<const std::uint64_t> keys;
  std::unique_ptr<std::uint32_t[]> positions;
  std::array<std::size_t, kShards + 1> begin{};

  explicit Batch(std::span<const std::uint64_t> all)
      : keys(all), positions(std::make_unique_for_overwrite<std::uint32_t[]>(all.size())) {
    const auto shards = std::make_unique_for_overwrite<std::uint8_t[]>(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      shards[i] = static_cast<std::uint8_t>(shard_of(row_hash(keys[i])));
      ++begin[shards[i] + 1];
    }
    for (std::size_t s = 0; s < kShards; ++s) begin[s + 1] += begin[s];
    std::array<std::size_t, kShards> next{};
    std::copy_n(begin.begin(), kShards, next.begin());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      positions[next[shards[i]]++] = static_cast<std::uint32_t>(i);
    }
  }
  std::span<const std::uint32_t> of(std::size_t shard) const noexcept {
    return {positions.get() + begin[shard], positions.get() + begin[shard + 1]};
  }
};

/// Calls act(shard, position, hash, row or kNone) for every key, under the lock of its shard. `prefetched`
/// bytes of a row's floats are on their way to the cache by then.
template <class Act>
void SparseTable::for_keys(std::span<const std::uint64_t> keys, std::size_t prefetched, Act act) {
  const Batch batch(keys);
  // Batches of several threads begin at shards far apart, so that none follows another from lock to lock.
  const std::size_t first = next_first_.fetch_add(kShards / 2 + 5, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::size_t s = (first + i) % kShards;
    if (batch.begin[s] != batch.begin[s + 1]) for_shard_keys(s, batch, prefetched, act);
  }
}

template <class Act>
void SparseTable::for_shard_keys(std::size_t index, const Batch& batch, std::size_t prefetched, Act& act) {
  // Keys between a stage and the next.
  constexpr std::size_t kAhead = 16;
  constexpr std::size_t kRing = 4 * kAhead;
  struct Entry {
    std::uint64_t hash;
    std::uint32_t row;
  };
  std::array<Entry, kRing> ring;
  const std::span<const std::uint32_t> positions = batch.of(index);
  const std::size_t bytes = RowShard::kKeyFloats * sizeof(float) + std::min<std::size_t>(prefetched, 512);
  Shard& shard = *shards_[index];
  const std::lock_guard lock(shard.mutex);
  if (cold_ && cold_->count(index) != 0) bring_in(index, batch);
  for (std::size_t i = 0; i < positions.size() + 2 * kAhead; ++i) {
    if (i < positions.size()) {
      const std::uint64_t hash = row_hash(batch.keys[positions[i]]);
      ring[i % kRing].hash = hash;
      shard.rows.prefetch_index(hash);
    }
    if (i >= kAhead && i - kAhead < positions.size()) {
      Entry& entry = ring[(i - kAhead) % kRing];
      entry.row = shard.rows.prefetch_row(entry.hash, bytes);
    }
    if (i < 2 * kAhead) continue;
    const std::size_t position = positions[i - 2 * kAhead];
    const Entry& entry = ring[(i - 2 * kAhead) % kRing];
    // The key may have been given a row since, or the guess may be another key's.
    std::uint32_t row = entry.row;
    if (row == RowShard::kNone || shard.rows.key_at(row) != batch.keys[position]) {
      row = shard.rows.find(entry.hash, batch.keys[position]);
    }
    act(shard, position, entry.hash, row);
  }
}

}  // namespace fleetrun::ps
