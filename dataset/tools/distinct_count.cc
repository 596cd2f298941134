#include "dataset/tools/distinct_count.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/mix.h"

namespace fleetrun::dataset {

void DistinctCount::add(std::uint64_t value) {
  add_mixed(mix(value));
}

void DistinctCount::add_mixed(std::uint64_t mixed) {
  if (!registers_.empty()) return hit(mixed);
  if (mixed == 0)
    has_zero_ = true;
  else
    insert(mixed);
  if (used_ + has_zero_ > kExact) estimate_from_here();
}

void DistinctCount::insert(std::uint64_t mixed) {
  if (table_.empty()) table_.resize(2 * kExact + kExact / 2);
  std::size_t place = (mixed >> 32) * table_.size() >> 32;
  while (table_[place] != 0) {
    if (table_[place] == mixed) return;
    place = place + 1 == table_.size() ? 0 : place + 1;
  }
  table_[place] = mixed;
  ++used_;
}

void DistinctCount::estimate_from_here() {
  registers_.resize(kRegisters);
  for (const std::uint64_t mixed : table_)
    if (mixed != 0) hit(mixed);
  if (has_zero_) hit(0);
  table_ = {};
}

void DistinctCount::add(const DistinctCount& other) {
  if (other.is_exact()) {
    for (const std::uint64_t mixed : other.table_)
      if (mixed != 0) add_mixed(mixed);
    if (other.has_zero_) add_mixed(0);
    return;
  }
  if (is_exact()) estimate_from_here();
  for (std::size_t i = 0; i < kRegisters; ++i) registers_[i] = std::max(registers_[i], other.registers_[i]);
}

std::uint64_t DistinctCount::value() const {
  if (is_exact()) return used_ + has_zero_;
  constexpr double m = kRegisters;
  double sum = 0;
  std::size_t not_hit = 0;
  for (const std::uint8_t rank : registers_) {
    sum += std::ldexp(1.0, -rank);
    not_hit += rank == 0;
  }
  const double raw = 0.7213 / (1 + 1.079 / m) * m * m / sum;
  const bool is_small = raw <= 2.5 * m && not_hit > 0;
  return static_cast<std::uint64_t>(
      std::llround(is_small ? m * std::log(m / static_cast<double>(not_hit)) : raw));
}

}  // namespace fleetrun::dataset
