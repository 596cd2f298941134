#include "ps/table/admission.h"

#include <algorithm>
#include <array>
#include <limits>

#include "runtime/base/mix.h"

namespace fleetrun::ps {
namespace {

constexpr std::size_t kFirstEntries = 16;
constexpr std::size_t kCells = std::size_t{1} << 17;
constexpr std::size_t kLineCells = 32;
constexpr std::uint16_t kMaxCount = std::numeric_limits<std::uint16_t>::max();

// Another constant than the shards' and the row index's.
std::uint64_t hash_of(std::uint64_t key) noexcept {
  return mix(key ^ 0xa0761d6478bd642fULL);
}

}  // namespace

bool Gatekeeper::admits_on_pull(std::uint64_t key) const noexcept {
  switch (admission_.kind) {
    case Admission::Kind::always:
      return true;
    case Admission::Kind::count:
    case Admission::Kind::count_bloom:
      return false;
    case Admission::Kind::probability:
      break;
  }
  const std::uint64_t word = mix(split_mix(admission_.seed) + hash_of(key));
  return static_cast<double>(word >> 11) * 0x1p-53 < admission_.probability;
}

bool Gatekeeper::admits_push(std::uint64_t key) {
  switch (admission_.kind) {
    case Admission::Kind::always:
    case Admission::Kind::probability:
      return admits_on_pull(key);
    case Admission::Kind::count: {
      if (admission_.threshold <= 1) return true;
      if (++count_of(key) < admission_.threshold) return false;
      forget(key);
      return true;
    }
    case Admission::Kind::count_bloom:
      break;
  }
  return count_in_cells(key) >= std::min<std::uint32_t>(admission_.threshold, kMaxCount);
}

std::uint32_t& Gatekeeper::count_of(std::uint64_t key) {
  if (4 * (used_ + 1) > 3 * entries_.size()) grow();
  const std::size_t mask = entries_.size() - 1;
  std::size_t at = hash_of(key) & mask;
  while (entries_[at].count != 0) {
    if (entries_[at].key == key) return entries_[at].count;
    at = (at + 1) & mask;
  }
  entries_[at].key = key;
  ++used_;
  return entries_[at].count;
}

void Gatekeeper::grow() {
  std::vector<Entry> larger(std::max(kFirstEntries, 2 * entries_.size()));
  const std::size_t mask = larger.size() - 1;
  for (const Entry& entry : entries_) {
    if (entry.count == 0) continue;
    std::size_t at = hash_of(entry.key) & mask;
    while (larger[at].count != 0) at = (at + 1) & mask;
    larger[at] = entry;
  }
  entries_ = std::move(larger);
}

void Gatekeeper::forget(std::uint64_t key) {
  if (used_ == 0) return;
  const std::size_t mask = entries_.size() - 1;
  std::size_t hole = hash_of(key) & mask;
  while (entries_[hole].count != 0 && entries_[hole].key != key) hole = (hole + 1) & mask;
  if (entries_[hole].count == 0) return;
  --used_;
  // What follows moves up where the hole is between its home and it, so that no probe ends too early.
  for (std::size_t at = (hole + 1) & mask; entries_[at].count != 0; at = (at + 1) & mask) {
    const std::size_t home = hash_of(entries_[at].key) & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    entries_[hole] = entries_[at];
    hole = at;
  }
  entries_[hole] = {};
}

std::uint32_t Gatekeeper::count_in_cells(std::uint64_t key) {
  if (cells_.empty()) cells_.resize(kCells);
  const std::uint64_t hash = hash_of(key);
  std::uint16_t* line = cells_.data() + (hash % (kCells / kLineCells)) * kLineCells;
  std::array<std::uint16_t*, 4> mine;
  std::uint16_t min = kMaxCount;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    mine[i] = line + (hash >> (40 + 5 * i)) % kLineCells;
    min = std::min(min, *mine[i]);
  }
  const auto next = static_cast<std::uint16_t>(min == kMaxCount ? min : min + 1);
  for (std::uint16_t* cell : mine) *cell = std::max(*cell, next);
  return next;
}

std::vector<std::uint64_t> Gatekeeper::words() const {
  std::vector<std::uint64_t> out;
  for (const Entry& entry : entries_) {
    if (entry.count == 0) continue;
    out.push_back(entry.key);
    out.push_back(entry.count);
  }
  for (std::size_t i = 0; i < cells_.size(); i += 4) {
    std::uint64_t word = 0;
    for (std::size_t j = 0; j < 4; ++j) word |= std::uint64_t{cells_[i + j]} << (16 * j);
    out.push_back(word);
  }
  return out;
}

void Gatekeeper::merge(std::span<const std::uint64_t> words,
                       const std::function<bool(std::uint64_t)>& is_mine) {
  if (admission_.kind == Admission::Kind::count) {
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
      if (words[i + 1] != 0 && is_mine(words[i]))
        count_of(words[i]) += static_cast<std::uint32_t>(words[i + 1]);
    }
  }
  if (admission_.kind != Admission::Kind::count_bloom || words.size() != kCells / 4) return;
  cells_.resize(kCells);
  for (std::size_t i = 0; i < kCells; ++i) {
    const std::uint64_t more = (words[i / 4] >> (16 * (i % 4))) & kMaxCount;
    cells_[i] = static_cast<std::uint16_t>(std::min<std::uint64_t>(kMaxCount, cells_[i] + more));
  }
}

}  // namespace fleetrun::ps
