// Rows of a sparse table that leave memory, and come back. A row is in memory or cold, never both: it is
// given up in memory once the cold rows have it, and taken from them once memory has it,
// all under its shard's lock.
#include <algorithm>
#include <cstring>

#include "ps/table/sparse_batch.h"
#include "ps/table/sparse_cut_shard.h"

namespace fleetrun::ps {
namespace {

// Looked for at once: what is held for them is bounded, however large the batch.
constexpr std::size_t kMaxAtOnce = 4096;

}  // namespace

SparseTable::~SparseTable() {
  if (!budget_) return;
  budget_->leave(*this);
  for (const auto& shard : shards_) budget_->gave(shard->rows.size() * row_bytes());
}

void SparseTable::attach(std::unique_ptr<ColdRows> cold, MemoryBudget& budget) {
  cold_ = std::move(cold);
  budget_ = &budget;
  budget.join(*this);
}

std::uint32_t SparseTable::take_row(Shard& shard, std::uint64_t hash, std::uint64_t key) {
  const std::uint32_t row = shard.rows.add(hash, key);
  if (!budget_) return row;
  budget_->took(row_bytes());
  if (row >= shard.uses.size()) shard.uses.resize(row + 1);
  shard.uses[row] = 0;
  return row;
}

// With its place in the index and its count of uses.
std::size_t SparseTable::row_bytes() const noexcept {
  return RowPlaces(layout_.floats).stride * sizeof(float) + 9;
}

void SparseTable::warm(std::span<const std::uint64_t> keys) {
  if (!cold_) return;
  const Batch batch(keys);
  for (std::size_t s = 0; s < kShards; ++s) {
    if (batch.begin[s] == batch.begin[s + 1] || cold_->count(s) == 0) continue;
    const std::lock_guard lock(shards_[s]->mutex);
    bring_in(s, batch);
  }
}

// The keys of the batch that are not in memory, each once, come in from the cold rows that have them.
void SparseTable::bring_in(std::size_t index, const Batch& batch) {
  const Shard& shard = *shards_[index];
  std::vector<std::uint64_t> missing;
  for (const std::uint32_t position : batch.of(index)) {
    const std::uint64_t key = batch.keys[position];
    if (shard.rows.find(row_hash(key), key) == RowShard::kNone) missing.push_back(key);
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  for (std::size_t at = 0; at < missing.size(); at += kMaxAtOnce) {
    come_in(index, std::span(missing).subspan(at, std::min(kMaxAtOnce, missing.size() - at)));
  }
}

void SparseTable::come_in(std::size_t index, std::span<const std::uint64_t> keys) {
  Shard& shard = *shards_[index];
  std::vector<float> rows(keys.size() * layout_.floats);
  const std::vector<std::uint32_t> found = cold_->take(index, keys, rows);
  std::size_t i = 0;
  try {
    for (; i < found.size(); ++i) {
      const std::uint64_t key = keys[found[i]];
      const std::uint32_t row = take_row(shard, row_hash(key), key);
      std::memcpy(shard.rows.at(row), rows.data() + i * layout_.floats, layout_.floats * sizeof(float));
      shard.changed.come(row, key);
      for (CutShard* cut : shard.cuts) cut->come(row, key);
    }
  } catch (...) {  // no memory: the rest goes back
    for (; i < found.size(); ++i) {
      cold_->put(index, keys.subspan(found[i], 1),
                 std::span(rows).subspan(i * layout_.floats, layout_.floats));
    }
    throw;
  }
  shard.metrics.from_disk += found.size();
}

// The rows leave memory, all or none.
void SparseTable::put_out(std::size_t index, std::span<const std::uint32_t> rows) {
  if (rows.empty()) return;
  Shard& shard = *shards_[index];
  std::vector<std::uint64_t> keys;
  std::vector<float> floats;
  keys.reserve(rows.size());
  floats.reserve(rows.size() * layout_.floats);
  for (const std::uint32_t row : rows) {
    keys.push_back(shard.rows.key_at(row));
    floats.insert(floats.end(), shard.rows.at(row), shard.rows.at(row) + layout_.floats);
  }
  cold_->put(index, keys, floats);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    shard.changed.go(rows[i], keys[i]);
    for (CutShard* cut : shard.cuts) cut->go(rows[i], keys[i]);
    remove_row(shard, row_hash(keys[i]), rows[i]);
  }
}

bool SparseTable::cool(std::size_t index, std::size_t rows) {
  Shard& shard = *shards_[index];
  const std::lock_guard lock(shard.mutex);
  const std::uint32_t from = shard.hand < shard.rows.end() ? shard.hand : 0;
  const auto until =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(shard.rows.end(), std::uint64_t{from} + rows));
  std::vector<std::uint32_t> going;
  for (std::uint32_t row = from; row < until; ++row) {
    if (!shard.rows.is_live(row)) continue;
    if (shard.uses[row] == kStays) {
      shard.uses[row] = kStays - 1;
    } else {
      going.push_back(row);
    }
  }
  put_out(index, going);
  shard.hand = until < shard.rows.end() ? until : 0;
  return shard.hand == 0;
}

// With a checkpoint, rows that no push has seen for accessor.ssd_unseenday_threshold days leave,
// whatever room there is.
void SparseTable::put_out_unseen(std::size_t index) {
  Shard& shard = *shards_[index];
  const std::lock_guard lock(shard.mutex);
  std::vector<std::uint32_t> going;
  for (std::uint32_t row = 0; row < shard.rows.end(); ++row) {
    if (!shard.rows.is_live(row)) continue;
    const Statistics statistics = read_statistics(shard.rows.at(row));
    if (static_cast<float>(statistics.unseen_days()) > config_.accessor.ssd_unseenday_threshold) {
      going.push_back(row);
    }
    if (going.size() == kMaxAtOnce || row + 1 == shard.rows.end()) {
      put_out(index, going);
      going.clear();
    }
  }
  put_out(index, going);
}

}  // namespace fleetrun::ps
