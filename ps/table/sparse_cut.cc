#include "ps/table/sparse_cut.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>

#include "ps/table/sparse_cut_shard.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

constexpr std::size_t kBlockRows = 1024;

}  // namespace

std::unique_ptr<SparseCut> SparseTable::begin_cut(SaveMode mode, const ChangeWindow& window) {
  return std::unique_ptr<SparseCut>(new SparseCut(*this, mode, window));
}

// All shards are locked at once, in their order, so that memory and cold rows are of one moment.
SparseCut::SparseCut(SparseTable& table, SaveMode mode, const ChangeWindow& window)
    : table_(table), mode_(mode), window_(window) {
  std::vector<std::unique_lock<std::mutex>> locks;
  for (const auto& shard : table.shards_) locks.emplace_back(shard->mutex);
  for (const auto& shard : table.shards_) {
    if (window.holds_all() || shard->changed.knows(window.since)) continue;
    throw Error(ErrorKind::config,
                "more rows of table '" + table.config_.name + "' have gone since that export than are known",
                "begin with an export of all rows, and export more often");
  }
  if (table.cold_) cold_ = table.cold_->view();
  for (std::size_t s = 0; s < SparseTable::kShards; ++s) begin_shard(s);
}

void SparseCut::begin_shard(std::size_t index) {
  SparseTable::Shard& shard = *table_.shards_[index];
  shards_.push_back(std::make_unique<SparseTable::CutShard>());
  SparseTable::CutShard& cut = *shards_.back();
  cut.pending = shard.rows.live();
  cut.ages = table_.layout_.statistics != 0 && mode_ == SaveMode::checkpoint;
  if (cut.ages) cut.unseen = shard.rows.live();
  cut.admission = shard.gate.words();
  cut.cold_is_read = !cold_;
  if (!window_.holds_all()) {
    for (std::uint32_t row = 0; row < shard.rows.end(); ++row)
      if (cut.is_pending(row) && !shard.changed.has_changed(row, window_.since)) cut.clear_pending(row);
    cut.erased = shard.changed.erased(window_.since);
    cut.changed_cold = shard.changed.cold(window_.since);
  }
  if (window_.is_export()) shard.changed.begin(window_.next);
  rows_ += shard.rows.size() + (cold_ ? cold_->count(index) : 0);
  shard.cuts.push_back(&cut);
}

SparseCut::~SparseCut() {
  for (std::size_t s = 0; s < shards_.size(); ++s) {
    SparseTable::Shard& shard = *table_.shards_[s];
    const std::lock_guard lock(shard.mutex);
    std::erase(shard.cuts, shards_[s].get());
  }
}

bool SparseCut::read(std::size_t shard, ColdBlock& block) {
  SparseTable::CutShard& cut = *shards_[shard];
  block.keys.clear();
  block.rows.clear();
  while (block.keys.empty()) {
    const bool is_read = cut.memory_is_read && cut.cold_is_read;
    if (is_read) return false;
    if (!cut.memory_is_read) {
      cut.memory_is_read = !read_memory(shard, block);
    } else {
      cut.cold_is_read = !read_cold(shard, block);
    }
  }
  return true;
}

// False when that was the last of them.
bool SparseCut::read_memory(std::size_t index, ColdBlock& block) {
  SparseTable::CutShard& cut = *shards_[index];
  SparseTable::Shard& shard = *table_.shards_[index];
  const std::size_t floats = table_.row_floats();
  const std::size_t end = 64 * cut.pending.size();
  const std::lock_guard lock(shard.mutex);
  const std::size_t until = std::min(end, cut.next + kBlockRows);
  for (; cut.next < until; ++cut.next) {
    if (cut.is_pending(cut.next)) {
      take(index, shard.rows.key_at(cut.next), shard.rows.at(cut.next), block);
      cut.clear_pending(cut.next);
    } else if (const auto kept = cut.kept_at.find(cut.next); kept != cut.kept_at.end()) {
      take(index, cut.kept_keys[kept->second], cut.kept_rows.data() + kept->second * floats, block);
    }
  }
  if (cut.next < end) return true;
  cut.kept_at = {};
  cut.kept_keys = {};
  cut.kept_rows = {};
  return false;
}

bool SparseCut::read_cold(std::size_t shard, ColdBlock& block) {
  SparseTable::CutShard& cut = *shards_[shard];
  const std::size_t floats = table_.row_floats();
  const ColdBlock read = cold_->read(shard, cut.cold_from, kBlockRows);
  for (std::size_t i = 0; i < read.keys.size(); ++i) {
    if (!window_.holds_all() && !std::ranges::binary_search(cut.changed_cold, read.keys[i])) continue;
    take(shard, read.keys[i], read.rows.data() + i * floats, block);
  }
  if (read.keys.size() < kBlockRows || read.keys.back() == std::numeric_limits<std::uint64_t>::max())
    return false;
  cut.cold_from = read.keys.back() + 1;
  return true;
}

void SparseCut::take(std::size_t shard, std::uint64_t key, const float* floats, ColdBlock& block) {
  if (table_.layout_.statistics != 0) {
    const Statistics statistics = read_statistics(floats);
    if (!should_save(table_.config_.accessor, statistics, mode_)) return;
    const bool changes = mode_ == SaveMode::delta || mode_ == SaveMode::base;
    if (changes && statistics.delta_score != 0.0f) shards_[shard]->saved.push_back({key, statistics});
  }
  block.keys.push_back(key);
  block.rows.insert(block.rows.end(), floats, floats + table_.row_floats());
}

const std::vector<std::uint64_t>& SparseCut::admission_words(std::size_t shard) const noexcept {
  return shards_[shard]->admission;
}

const std::vector<std::uint64_t>& SparseCut::erased(std::size_t shard) const noexcept {
  return shards_[shard]->erased;
}

bool SparseCut::changes_rows() const noexcept {
  return table_.layout_.statistics != 0 && mode_ != SaveMode::all && mode_ != SaveMode::changes;
}

// Rows grow older whatever they were; the other modes take away what they had.
void SparseCut::pass_over() {
  if (!changes_rows()) return;
  ColdBlock block;
  for (std::size_t s = 0; s < SparseTable::kShards; ++s) {
    if (mode_ != SaveMode::checkpoint) {
      while (read(s, block)) continue;
    } else {
      const std::lock_guard lock(table_.shards_[s]->mutex);
      shards_[s]->pending = {};
    }
  }
}

void SparseCut::settle(const Settled& tell) {
  if (!changes_rows()) return;
  for (std::size_t s = 0; s < SparseTable::kShards; ++s) settle_shard(s, tell);
  if (mode_ != SaveMode::checkpoint || !cold_) return;
  try {
    for (std::size_t s = 0; s < SparseTable::kShards; ++s) table_.put_out_unseen(s);
  } catch (const Error&) {
    // They are in memory as before. Whoever needs the room will be told what the disk has.
  }
}

void SparseCut::settle_shard(std::size_t index, const Settled& tell) {
  SparseTable::CutShard& cut = *shards_[index];
  SparseTable::Shard& shard = *table_.shards_[index];
  const std::lock_guard lock(shard.mutex);
  std::vector<std::uint64_t> keys;
  std::vector<Statistics> noted;
  const auto note_row = [&](const Statistics& saved, std::uint32_t row) {
    table_.note_saved_row(shard, row, mode_, saved);
    if (!tell) return;
    keys.push_back(shard.rows.key_at(row));
    noted.push_back(saved);
  };
  std::unordered_map<std::uint64_t, Statistics> elsewhere;
  for (const SparseTable::CutShard::Saved& saved : cut.saved) {
    const std::uint32_t row = shard.rows.find(row_hash(saved.key), saved.key);
    if (row != RowShard::kNone) {
      note_row(saved.statistics, row);
    } else if (cold_) {
      elsewhere.emplace(saved.key, saved.statistics);
    }
  }
  for (std::uint32_t row = 0; row < 64 * cut.unseen.size(); ++row) {
    if (cut.is_unseen(row)) note_row({}, row);
  }
  if (!keys.empty()) tell(keys, noted);
  if (!cold_ || (!cut.ages && elsewhere.empty())) return;
  table_.cold_->rewrite(index, [&](std::uint64_t key, std::span<float> row) {
    const auto saved = elsewhere.find(key);
    if (cut.ages ? cut.seen_cold.contains(key) : saved == elsewhere.end()) return ColdRows::Fate::keep;
    table_.note_saved(mode_, cut.ages ? Statistics{} : saved->second, row.data());
    shard.changed.change_cold(key);
    return ColdRows::Fate::change;
  });
}

void SparseTable::note_saved(SaveMode mode, const Statistics& saved, float* row) const noexcept {
  Statistics now = read_statistics(row);
  ps::note_saved(config_.accessor, saved, mode, now);
  write_statistics(now, row);
}

void SparseTable::note_saved_row(Shard& shard, std::uint32_t row, SaveMode mode, const Statistics& saved) {
  keep_for_cuts(shard, row);
  shard.changed.change(row);
  note_saved(mode, saved, shard.rows.at(row));
}

void SparseTable::note_saved_rows(SaveMode mode, std::span<const std::uint64_t> keys,
                                  std::span<const Statistics> saved) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint64_t hash = row_hash(keys[i]);
    Shard& shard = *shards_[shard_of(hash)];
    const std::lock_guard lock(shard.mutex);
    const std::uint32_t row = shard.rows.find(hash, keys[i]);
    if (row != RowShard::kNone) note_saved_row(shard, row, mode, saved[i]);
  }
}

}  // namespace fleetrun::ps
