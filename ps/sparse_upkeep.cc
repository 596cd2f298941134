// What is done to a sparse table besides pulls and pushes: erasing, expiry, whole rows in and out, cold rows.
#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>

#include "ps/sparse_batch.h"
#include "ps/sparse_cut.h"
#include "ps/sparse_cut_shard.h"

namespace fleetrun::ps {

std::uint64_t SparseTable::erase(std::span<const std::uint64_t> keys) {
  std::uint64_t erased = 0;
  for_keys(keys, 0, [&](Shard& shard, std::size_t, std::uint64_t hash, std::uint32_t row) {
    if (row == RowShard::kNone) return;
    remove_row(shard, hash, row);
    ++shard.figures.erased;
    ++erased;
  });
  return erased;
}

void SparseTable::remove_row(Shard& shard, std::uint64_t hash, std::uint32_t row) {
  keep_for_cuts(shard, row);
  shard.rows.remove(hash, row);
  if (budget_) budget_->gave(row_bytes());
}

std::uint64_t SparseTable::shrink(unsigned threads) {
  if (layout_.statistics == 0) return 0;
  std::array<std::uint64_t, kShards> erased{};
  const std::size_t workers = std::clamp<std::size_t>(threads, 1, kShards);
  std::vector<std::exception_ptr> failures(workers);
  std::vector<std::jthread> running;
  for (std::size_t w = 0; w < workers; ++w) {
    running.emplace_back([&, w] {
      try {
        for (std::size_t s = w; s < kShards; s += workers) erased[s] = shrink_shard(s);
      } catch (...) {
        failures[w] = std::current_exception();
      }
    });
  }
  running.clear();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  std::uint64_t total = 0;
  for (const std::uint64_t count : erased) total += count;
  return total;
}

std::uint64_t SparseTable::shrink_shard(std::size_t index) {
  Shard& shard = *shards_[index];
  const std::lock_guard lock(shard.mutex);
  std::uint64_t erased = 0;
  for (std::uint32_t row = 0; row < shard.rows.end(); ++row) {
    if (!shard.rows.is_live(row)) continue;
    keep_for_cuts(shard, row);
    float* floats = shard.rows.at(row);
    Statistics statistics = read_statistics(floats);
    if (decay(config_.accessor, statistics)) {
      remove_row(shard, row_hash(shard.rows.key_at(row)), row);
      ++erased;
    } else {
      write_statistics(statistics, floats);
    }
  }
  if (cold_) {
    cold_->rewrite(index, [&](std::uint64_t, std::span<float> row) {
      Statistics statistics = read_statistics(row.data());
      const bool goes = decay(config_.accessor, statistics);
      if (goes) ++erased;
      write_statistics(statistics, row.data());
      return goes ? ColdRows::Fate::erase : ColdRows::Fate::change;
    });
  }
  shard.figures.erased += erased;
  return erased;
}

std::uint64_t SparseTable::rows() const {
  std::uint64_t rows = 0;
  for (std::size_t s = 0; s < kShards; ++s) {
    const std::lock_guard lock(shards_[s]->mutex);
    rows += shards_[s]->rows.size() + (cold_ ? cold_->count(s) : 0);
  }
  return rows;
}

SparseFigures SparseTable::figures() const {
  SparseFigures out;
  out.bytes = arena_.bytes();
  for (std::size_t s = 0; s < kShards; ++s) {
    const Shard& shard = *shards_[s];
    const std::lock_guard lock(shard.mutex);
    const std::uint64_t cold = cold_ ? cold_->count(s) : 0;
    out.rows += shard.rows.size() + cold;
    out.cold_rows += cold;
    out.bytes += shard.rows.bytes() + shard.gate.bytes() + shard.touched.capacity() * sizeof(std::uint64_t);
    out.pulled += shard.figures.pulled;
    out.pushed += shard.figures.pushed;
    out.created += shard.figures.created;
    out.erased += shard.figures.erased;
    out.not_admitted += shard.figures.not_admitted;
    out.from_disk += shard.figures.from_disk;
  }
  return out;
}

void SparseTable::visit(
    std::size_t shard_index,
    const std::function<void(std::uint64_t key, std::span<const float> row)>& take) const {
  const Shard& shard = *shards_[shard_index];
  const std::lock_guard lock(shard.mutex);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> ordered;
  ordered.reserve(shard.rows.size());
  for (std::uint32_t row = 0; row < shard.rows.end(); ++row) {
    if (shard.rows.is_live(row)) ordered.emplace_back(shard.rows.key_at(row), row);
  }
  std::sort(ordered.begin(), ordered.end());
  for (const auto& [key, row] : ordered) take(key, {shard.rows.at(row), layout_.floats});
}

void SparseTable::insert(std::uint64_t key, std::span<const float> row) {
  if (budget_) budget_->make_room();
  const std::uint64_t hash = row_hash(key);
  Shard& shard = *shards_[shard_of(hash)];
  const std::lock_guard lock(shard.mutex);
  if (cold_) cold_->erase(shard_of(hash), {&key, 1});
  std::uint32_t to = shard.rows.find(hash, key);
  if (to == RowShard::kNone) {
    to = take_row(shard, hash, key);
    shard.gate.forget(key);
  } else {
    keep_for_cuts(shard, to);
  }
  touch(shard, to);
  std::memcpy(shard.rows.at(to), row.data(), layout_.floats * sizeof(float));
}

std::vector<std::uint64_t> SparseTable::admission_words(std::size_t shard) const {
  const std::lock_guard lock(shards_[shard]->mutex);
  return shards_[shard]->gate.words();
}

void SparseTable::merge_admission(std::size_t shard, std::span<const std::uint64_t> words,
                                  const std::function<bool(std::uint64_t key)>& is_mine) {
  const std::lock_guard lock(shards_[shard]->mutex);
  shards_[shard]->gate.merge(words, is_mine);
}

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
  if (budget_) budget_->took(row_bytes());
  return row;
}

// With its place in the index.
std::size_t SparseTable::row_bytes() const noexcept {
  return RowPlaces(layout_.floats).stride * sizeof(float) + 8;
}

// The keys of the batch that are not in memory, each once, come in from the cold rows that have them.
void SparseTable::bring_in(std::size_t index, const Batch& batch) {
  Shard& shard = *shards_[index];
  std::vector<std::uint64_t> missing;
  for (const std::uint32_t position : batch.of(index)) {
    const std::uint64_t key = batch.keys[position];
    if (shard.rows.find(row_hash(key), key) == RowShard::kNone) missing.push_back(key);
  }
  if (missing.empty()) return;
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  std::vector<float> rows(missing.size() * layout_.floats);
  const std::vector<std::uint32_t> found = cold_->take(index, missing, rows);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::uint64_t key = missing[found[i]];
    const std::uint32_t row = take_row(shard, row_hash(key), key);
    std::memcpy(shard.rows.at(row), rows.data() + i * layout_.floats, layout_.floats * sizeof(float));
    touch(shard, row);
  }
  shard.figures.from_disk += found.size();
}

bool SparseTable::cool(std::size_t index, std::size_t rows) {
  Shard& shard = *shards_[index];
  const std::lock_guard lock(shard.mutex);
  shard.touched.resize(shard.rows.live().size());
  const std::uint32_t from = shard.hand < shard.rows.end() ? shard.hand : 0;
  const auto until =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(shard.rows.end(), std::uint64_t{from} + rows));
  std::vector<std::uint32_t> going;
  std::vector<std::uint64_t> keys;
  std::vector<float> floats;
  for (std::uint32_t row = from; row < until; ++row) {
    std::uint64_t& word = shard.touched[row / 64];
    const std::uint64_t bit = std::uint64_t{1} << (row % 64);
    if (shard.rows.is_live(row) && (word & bit) == 0) {
      going.push_back(row);
      keys.push_back(shard.rows.key_at(row));
      floats.insert(floats.end(), shard.rows.at(row), shard.rows.at(row) + layout_.floats);
    }
    word &= ~bit;
  }
  if (!going.empty()) cold_->put(index, keys, floats);
  for (std::size_t i = 0; i < going.size(); ++i) remove_row(shard, row_hash(keys[i]), going[i]);
  shard.hand = until;
  if (until < shard.rows.end()) return false;
  shard.hand = 0;
  return true;
}

}  // namespace fleetrun::ps
