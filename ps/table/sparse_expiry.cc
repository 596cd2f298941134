// Rows that expire by time: which they are. Who asks for them has them erased between changes, so that a row
// that is pushed meanwhile stays.
#include <algorithm>

#include "ps/table/sparse_batch.h"

namespace fleetrun::ps {

bool SparseTable::has_expired(const float* row, std::uint32_t now) const noexcept {
  const std::uint32_t touched = read_second(layout_, row);
  return now > touched && now - touched > config_.expire_seconds;
}

void SparseTable::go_to_next_shard(ExpiryPlace& place) noexcept {
  place = {.shard = (place.shard + 1) % kShards, .seen = place.seen + 1};
}

std::vector<std::uint64_t> SparseTable::find_expired(ExpiryPlace& place, std::size_t rows) {
  std::vector<std::uint64_t> keys;
  if (layout_.touched == RowLayout::kNone) return keys;
  const std::uint32_t now = clock_();
  Shard& shard = *shards_[place.shard];
  std::unique_ptr<ColdView> cold;
  {
    const std::lock_guard lock(shard.mutex);
    if (!place.is_in_cold) {
      const auto until = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(shard.rows.end(), std::uint64_t{place.row} + rows));
      place.seen += until - std::min(until, place.row);
      for (; place.row < until; ++place.row) {
        if (shard.rows.is_live(place.row) && has_expired(shard.rows.at(place.row), now))
          keys.push_back(shard.rows.key_at(place.row));
      }
      if (place.row < shard.rows.end()) return keys;
      place.is_in_cold = cold_ && cold_->count(place.shard) != 0;
      if (!place.is_in_cold) {
        go_to_next_shard(place);
        return keys;
      }
    }
    if (cold_) cold = cold_->view();
  }
  const ColdBlock block = cold->read(place.shard, place.cold_from, rows);
  for (std::size_t i = 0; i < block.keys.size(); ++i) {
    if (has_expired(block.rows.data() + i * layout_.floats, now)) keys.push_back(block.keys[i]);
  }
  place.seen += block.keys.size();
  const bool is_last = block.keys.size() < rows || block.keys.back() == UINT64_MAX;
  if (is_last)
    go_to_next_shard(place);
  else
    place.cold_from = block.keys.back() + 1;
  return keys;
}

std::uint64_t SparseTable::expiry_round() const {
  std::uint64_t rows = 0;
  for (std::size_t s = 0; s < kShards; ++s) {
    const std::lock_guard lock(shards_[s]->mutex);
    rows += shards_[s]->rows.end() + (cold_ ? cold_->count(s) : 0);
  }
  return rows;
}

std::vector<std::uint64_t> SparseTable::still_expired(std::span<const std::uint64_t> keys) {
  std::vector<std::uint64_t> out;
  const std::uint32_t now = clock_();
  look(keys, [&](std::size_t position, std::span<const float> row) {
    if (!row.empty() && has_expired(row.data(), now)) out.push_back(keys[position]);
  });
  return out;
}

}  // namespace fleetrun::ps
