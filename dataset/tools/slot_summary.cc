#include "dataset/tools/slot_summary.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace fleetrun::dataset {
namespace {

void add_ints(SlotSummary& summary, const std::vector<std::int64_t>& ints) {
  std::int64_t least = summary.least_int, greatest = summary.greatest_int;
  for (const std::int64_t value : ints) {
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  summary.least_int = least;
  summary.greatest_int = greatest;
  for (const std::int64_t value : ints) summary.distinct.add(static_cast<std::uint64_t>(value));
}

void add_floats(SlotSummary& summary, const std::vector<float>& floats) {
  for (const float value : floats) {
    if (std::isnan(value)) {
      ++summary.missing;
    } else {
      summary.least = std::min(summary.least, value);
      summary.greatest = std::max(summary.greatest, value);
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
  least_int = std::min(least_int, other.least_int);
  greatest_int = std::max(greatest_int, other.greatest_int);
  least = std::min(least, other.least);
  greatest = std::max(greatest, other.greatest);
  sum += other.sum;
  finite += other.finite;
  distinct.add(other.distinct);
}

}  // namespace fleetrun::dataset
