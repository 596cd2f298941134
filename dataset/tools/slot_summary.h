// What the values of a slot are like.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <limits>

#include "dataset/base/batch.h"
#include "dataset/tools/distinct_count.h"

namespace fleetrun::dataset {

struct SlotSummary {
  std::uint64_t rows = 0;
  std::uint64_t values = 0;
  /// Values of the row that has the fewest, and the most.
  std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t most = 0;
  /// Sparse int64: rows whose only value is 0, which is how MultiSlot files say that there is none.
  /// float32: nan.
  std::uint64_t missing = 0;
  // Of ints; of floats those that are not nan.
  std::int64_t min_int = std::numeric_limits<std::int64_t>::max();
  std::int64_t max_int = std::numeric_limits<std::int64_t>::min();
  float min = std::numeric_limits<float>::infinity();
  float max = -std::numeric_limits<float>::infinity();
  /// Of floats, without nan and infinities.
  double sum = 0;
  std::uint64_t finite = 0;
  DistinctCount distinct;

  /// All rows of a batch.
  void add(const Slot& slot, const SlotValues& column, std::size_t rows_of_batch);
  void add(const SlotSummary& other);
};

}  // namespace fleetrun::dataset
