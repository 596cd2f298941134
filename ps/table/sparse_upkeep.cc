// What is done to a sparse table besides pulls and pushes: erasing, expiry, whole rows in and out.
#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>

#include "ps/table/sparse_batch.h"
#include "ps/table/sparse_cut.h"
#include "ps/table/sparse_cut_shard.h"

namespace fleetrun::ps {

std::uint64_t SparseTable::erase(std::span<const std::uint64_t> keys) {
  std::uint64_t erased = 0;
  for_keys(keys, 0, [&](Shard& shard, std::size_t, std::uint64_t hash, std::uint32_t row) {
    // Of equal keys the later ones find the row that the first has removed.
    if (row == RowShard::kNone || !shard.rows.is_live(row)) return;
    erase_row(shard, hash, row);
    ++shard.metrics.erased;
    ++erased;
  });
  return erased;
}

void SparseTable::look(std::span<const std::uint64_t> keys,
                       const std::function<void(std::size_t position, std::span<const float> row)>& take) {
  for_keys(keys, 0, [&](Shard& shard, std::size_t position, std::uint64_t, std::uint32_t row) {
    take(position, row == RowShard::kNone ? std::span<const float>()
                                          : std::span<const float>(shard.rows.at(row), layout_.floats));
  });
}

void SparseTable::remove_row(Shard& shard, std::uint64_t hash, std::uint32_t row) {
  keep_for_cuts(shard, row);
  see_for_cuts(shard, row);
  shard.rows.remove(hash, row);
  if (budget_) budget_->gave(row_bytes());
}

void SparseTable::erase_row(Shard& shard, std::uint64_t hash, std::uint32_t row) {
  shard.changed.erase(shard.rows.key_at(row), shard.rows.size());
  remove_row(shard, hash, row);
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
    float* floats = shard.rows.at(row);
    const Statistics before = read_statistics(floats);
    Statistics statistics = before;
    if (decay(config_.accessor, statistics)) {
      erase_row(shard, row_hash(shard.rows.key_at(row)), row);
      ++erased;
    } else if (statistics != before) {
      keep_for_cuts(shard, row);
      shard.changed.change(row);
      write_statistics(statistics, floats);
    }
  }
  if (cold_) {
    cold_->rewrite(index, [&](std::uint64_t key, std::span<float> row) {
      const Statistics before = read_statistics(row.data());
      Statistics statistics = before;
      if (decay(config_.accessor, statistics)) {
        ++erased;
        shard.changed.erase(key, shard.rows.size() + cold_->count(index));
        return ColdRows::Fate::erase;
      }
      if (statistics == before) return ColdRows::Fate::keep;
      write_statistics(statistics, row.data());
      shard.changed.change_cold(key);
      return ColdRows::Fate::change;
    });
  }
  shard.metrics.erased += erased;
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

SparseMetrics SparseTable::metrics() const {
  SparseMetrics out;
  out.bytes = arena_.bytes();
  for (std::size_t s = 0; s < kShards; ++s) {
    const Shard& shard = *shards_[s];
    const std::lock_guard lock(shard.mutex);
    const std::uint64_t cold = cold_ ? cold_->count(s) : 0;
    out.rows += shard.rows.size() + cold;
    out.cold_rows += cold;
    out.bytes += shard.rows.bytes() + shard.gate.bytes() + shard.uses.capacity() + shard.changed.bytes();
    out.pulled += shard.metrics.pulled;
    out.pushed += shard.metrics.pushed;
    out.created += shard.metrics.created;
    out.erased += shard.metrics.erased;
    out.not_admitted += shard.metrics.not_admitted;
    out.from_disk += shard.metrics.from_disk;
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
  if (cold_ && cold_->count(shard_of(hash)) != 0) cold_->erase(shard_of(hash), {&key, 1});
  std::uint32_t to = shard.rows.find(hash, key);
  if (to == RowShard::kNone) {
    to = take_row(shard, hash, key);
    shard.gate.forget(key);
    shard.changed.make(to, key);
  } else {
    before_change(shard, to);
  }
  float* floats = shard.rows.at(to);
  std::memcpy(floats, row.data(), layout_.floats * sizeof(float));
  // Of a save in which rows have no time: it counts from now on.
  if (layout_.touched != RowLayout::kNone && read_second(layout_, floats) == 0)
    write_touched(clock_(), floats);
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

}  // namespace fleetrun::ps
