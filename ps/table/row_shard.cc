#include "ps/table/row_shard.h"

#include <algorithm>
#include <bit>
#include <new>

namespace fleetrun::ps {
namespace {

constexpr std::size_t kSlabBytes = std::size_t{32} << 10;

}  // namespace

RowPlaces::RowPlaces(std::size_t row_floats)
    : stride((RowShard::kKeyFloats + row_floats + 1) / 2 * 2),
      slab_shift(static_cast<unsigned>(
          std::bit_width(std::max<std::size_t>(1, kSlabBytes / (stride * sizeof(float)))) - 1)) {}

std::uint32_t RowShard::add(std::uint64_t hash, std::uint64_t key) {
  if (index_.is_full()) grow_index();
  const std::uint32_t row = take_number();
  std::memcpy(place(row), &key, sizeof key);
  live_[row / 64] |= std::uint64_t{1} << (row % 64);
  index_.add(hash, row);
  return row;
}

std::uint32_t RowShard::take_number() {
  if (!free_.empty()) {
    const std::uint32_t row = free_.back();
    free_.pop_back();
    return row;
  }
  if (end_ == kNone) throw std::bad_alloc();
  if (end_ / 64 == live_.size()) live_.push_back(0);
  if ((end_ >> places_.slab_shift) == slabs_.size()) {
    slabs_.reserve(slabs_.size() + 1);
    slabs_.push_back(arena_->take_slab());
  }
  return end_++;
}

void RowShard::remove(std::uint64_t hash, std::uint32_t row) {
  free_.push_back(row);
  index_.remove(hash, row);
  live_[row / 64] &= ~(std::uint64_t{1} << (row % 64));
}

// Rows are read in the order in which they lie.
void RowShard::grow_index() {
  index_.grow();
  for (std::size_t word = 0; word < live_.size(); ++word) {
    for (std::uint64_t bits = live_[word]; bits != 0; bits &= bits - 1) {
      const auto row =
          static_cast<std::uint32_t>(64 * word + static_cast<std::size_t>(std::countr_zero(bits)));
      index_.add(row_hash(key_at(row)), row);
    }
  }
}

}  // namespace fleetrun::ps
