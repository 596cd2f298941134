#include "dataset/tools/slot_summary.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace fleetrun::dataset {
namespace {

void add_ints(SlotSummary& summary, const std::vector<std::int64_t>& ints) {
  std::int64_t min = summary.min_int, max = summary.max_int;
  for (const std::int64_t value : ints) {
    min = std::min(min, value);
    max = std::max(max, value);
  }
  summary.min_int = min;
  summary.max_int = max;
  for (const std::int64_t value : ints) summary.distinct.add(static_cast<std::uint64_t>(value));
}

void add_floats(SlotSummary& summary, const std::vector<float>& floats) {
  for (const float value : floats) {
    if (std::isnan(value)) {
      ++summary.missing;
    } else {
      summary.min = std::min(summary.min, value);
      summary.max = std::max(summary.max, value);
    }
    if (std::isfinite(value)) {
      summary.sum += static_cast<double>(value);
      ++summary.finite;
    }
  }
  // -0 is 0, and every nan is one value.
  for (const float value : floats)
    summary.distinct.add(std::isnan(value) ? std::uint64_t{1} << 32
                                           : std::bit_cast<std::uint32_t>(value + 0.0F));
}

void add_counts(SlotSummary& summary, const Slot& slot, const SlotValues& column, std::size_t rows) {
  for (std::size_t row = 0; row < rows; ++row) {
    const std::uint64_t count = column.offsets[row + 1] - column.offsets[row];
    summary.fewest = std::min(summary.fewest, count);
    summary.most = std::max(summary.most, count);
    if (count == 1 && slot.type == SlotType::int64) summary.missing += column.ints[column.offsets[row]] == 0;
  }
}

}  // namespace

void SlotSummary::add(const Slot& slot, const SlotValues& column, std::size_t rows_of_batch) {
  if (rows_of_batch == 0) return;
  rows += rows_of_batch;
  values += column.ints.size() + column.floats.size();
  if (slot.dense)
    fewest = most = static_cast<std::uint64_t>(slot.width);
  else
    add_counts(*this, slot, column, rows_of_batch);
  if (slot.type == SlotType::int64)
    add_ints(*this, column.ints);
  else
    add_floats(*this, column.floats);
}

void SlotSummary::add(const SlotSummary& other) {
  rows += other.rows;
  values += other.values;
  fewest = std::min(fewest, other.fewest);
  most = std::max(most, other.most);
  missing += other.missing;
  min_int = std::min(min_int, other.min_int);
  max_int = std::max(max_int, other.max_int);
  min = std::min(min, other.min);
  max = std::max(max, other.max);
  sum += other.sum;
  finite += other.finite;
  distinct.add(other.distinct);
}

}  // namespace fleetrun::dataset
