#include "ps/sparse_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>

#include "ps/hash.h"

namespace fleetrun::ps {
namespace {

constexpr std::size_t kBlock = 32;
constexpr std::size_t kSlabBytes = std::size_t{32} << 10;
constexpr std::size_t kFirstSlots = 16;
constexpr std::size_t kCacheLine = 64;

// Another constant than key_partition's: the keys of one server spread over all shards.
std::uint64_t hash_key(std::uint64_t key) noexcept {
  return mix(key ^ 0xd6e8feb86659fd93ULL);
}

unsigned slab_shift_for(std::size_t stride) noexcept {
  const std::size_t rows = std::max<std::size_t>(1, kSlabBytes / (stride * sizeof(float)));
  return static_cast<unsigned>(std::bit_width(rows) - 1);
}

std::uint32_t next_step(std::uint32_t step) noexcept {
  return step == UINT32_MAX ? step : step + 1;
}

}  // namespace

// The positions of a batch, those of shard s at [begin[s], begin[s + 1]), in their order.
struct SparseTable::Batch {
  std::unique_ptr<std::uint32_t[]> positions;
  std::array<std::size_t, kShards + 1> begin{};

  explicit Batch(std::span<const std::uint64_t> keys)
      : positions(std::make_unique_for_overwrite<std::uint32_t[]>(keys.size())) {
    const auto shards = std::make_unique_for_overwrite<std::uint8_t[]>(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      shards[i] = static_cast<std::uint8_t>(shard_of(hash_key(keys[i])));
      ++begin[shards[i] + 1];
    }
    for (std::size_t s = 0; s < kShards; ++s) begin[s + 1] += begin[s];
    std::array<std::size_t, kShards> next{};
    std::copy_n(begin.begin(), kShards, next.begin());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      positions[next[shards[i]]++] = static_cast<std::uint32_t>(i);
    }
  }
};

SparseTable::SparseTable(const TableConfig& config)
    : config_(config),
      updater_(config.rule),
      initializer_(config.initializer, config.name),
      width_(config.width),
      state_floats_(updater_.state_floats(width_)),
      row_floats_(width_ + state_floats_ + (updater_.counts_steps() ? 1 : 0)),
      stride_((row_floats_ + 3) / 4 * 4),
      slab_shift_(slab_shift_for(stride_)),
      arena_(stride_ << slab_shift_) {}

template <class Act>
void SparseTable::for_rows(std::span<const std::uint64_t> keys, Act act) {
  const Batch batch(keys);
  std::array<std::uint64_t, kBlock> hashes;
  std::array<float*, kBlock> found;
  const std::size_t row_bytes = stride_ * sizeof(float);
  for (std::size_t s = 0; s < kShards; ++s) {
    const std::size_t end = batch.begin[s + 1];
    if (batch.begin[s] == end) continue;
    Shard& shard = shards_[s];
    const std::lock_guard lock(shard.mutex);
    for (std::size_t at = batch.begin[s]; at < end; at += kBlock) {
      const std::uint32_t* positions = batch.positions.get() + at;
      const std::size_t count = std::min(kBlock, end - at);
      for (std::size_t i = 0; i < count; ++i) {
        hashes[i] = hash_key(keys[positions[i]]);
        if (!shard.slots.empty()) __builtin_prefetch(&shard.slots[hashes[i] & (shard.slots.size() - 1)]);
      }
      for (std::size_t i = 0; i < count; ++i) {
        found[i] = find_or_add(shard, keys[positions[i]], hashes[i], true);
        for (std::size_t byte = 0; byte < std::min(row_bytes, 4 * kCacheLine); byte += kCacheLine) {
          __builtin_prefetch(reinterpret_cast<const char*>(found[i]) + byte, 1);
        }
      }
      for (std::size_t i = 0; i < count; ++i) act(positions[i], found[i]);
    }
  }
}

void SparseTable::pull(std::span<const std::uint64_t> keys, float* rows) {
  for_rows(keys, [this, rows](std::size_t position, const float* row) {
    std::memcpy(rows + position * width_, row, width_ * sizeof(float));
  });
}

void SparseTable::push(std::span<const std::uint64_t> keys, const float* gradients) {
  for_rows(keys, [this, gradients](std::size_t position, float* row) {
    update(row, gradients + position * width_);
  });
}

void SparseTable::add(std::span<const std::uint64_t> keys, const float* changes) {
  for_rows(keys, [this, changes](std::size_t position, float* row) {
    for (std::size_t c = 0; c < width_; ++c) row[c] += changes[position * width_ + c];
  });
}

void SparseTable::assign(std::span<const std::uint64_t> keys, const float* values) {
  for_rows(keys, [this, values](std::size_t position, float* row) {
    std::memcpy(row, values + position * width_, width_ * sizeof(float));
  });
}

void SparseTable::update(float* row, const float* gradient) const noexcept {
  std::uint32_t step = 0;
  if (updater_.counts_steps()) {
    float* word = row + row_floats_ - 1;
    std::memcpy(&step, word, sizeof step);
    step = next_step(step);
    std::memcpy(word, &step, sizeof step);
  }
  updater_.apply(row, row + width_, gradient, width_, step);
}

float* SparseTable::find_or_add(Shard& shard, std::uint64_t key, std::uint64_t hash, bool initialize) {
  // At most three quarters full, so that a probe for an unknown key ends soon.
  if (4 * (std::size_t{shard.rows} + 1) > 3 * shard.slots.size()) grow(shard);
  const std::size_t mask = shard.slots.size() - 1;
  std::size_t at = hash & mask;
  while (shard.slots[at].row != kNoRow) {
    if (shard.slots[at].key == key) return row_at(shard, shard.slots[at].row);
    at = (at + 1) & mask;
  }
  float* row = add_row(shard);
  if (initialize) {
    initializer_.fill(key, {row, width_});
    updater_.reset({row + width_, state_floats_});
    if (updater_.counts_steps()) std::memset(row + row_floats_ - 1, 0, sizeof(float));
  }
  shard.slots[at] = {key, shard.rows - 1};
  return row;
}

float* SparseTable::add_row(Shard& shard) {
  if (shard.rows == kNoRow) throw std::bad_alloc();
  if ((shard.rows >> slab_shift_) == shard.slabs.size()) {
    shard.slabs.reserve(shard.slabs.size() + 1);
    shard.slabs.push_back(arena_.take_slab());
  }
  return row_at(shard, shard.rows++);
}

void SparseTable::grow(Shard& shard) {
  std::vector<Slot> larger(std::max(kFirstSlots, 2 * shard.slots.size()));
  const std::size_t mask = larger.size() - 1;
  for (const Slot& slot : shard.slots) {
    if (slot.row == kNoRow) continue;
    std::size_t at = hash_key(slot.key) & mask;
    while (larger[at].row != kNoRow) at = (at + 1) & mask;
    larger[at] = slot;
  }
  shard.slots = std::move(larger);
}

std::uint64_t SparseTable::rows() const {
  std::uint64_t rows = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    rows += shard.rows;
  }
  return rows;
}

void SparseTable::visit(
    std::size_t shard_index,
    const std::function<void(std::uint64_t key, std::span<const float> row)>& take) const {
  const Shard& shard = shards_[shard_index];
  const std::lock_guard lock(shard.mutex);
  std::vector<Slot> ordered;
  ordered.reserve(shard.rows);
  std::copy_if(shard.slots.begin(), shard.slots.end(), std::back_inserter(ordered),
               [](const Slot& slot) { return slot.row != kNoRow; });
  std::sort(ordered.begin(), ordered.end(), [](const Slot& a, const Slot& b) { return a.key < b.key; });
  for (const Slot& slot : ordered) take(slot.key, {row_at(shard, slot.row), row_floats_});
}

void SparseTable::insert(std::uint64_t key, std::span<const float> row) {
  const std::uint64_t hash = hash_key(key);
  Shard& shard = shards_[shard_of(hash)];
  const std::lock_guard lock(shard.mutex);
  std::memcpy(find_or_add(shard, key, hash, false), row.data(), row_floats_ * sizeof(float));
}

}  // namespace fleetrun::ps
