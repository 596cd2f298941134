// Rows as servers hold them, for people who look.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fleetrun::ps {

/// What a table with an accessor counts of a row.
struct StoredStatistics {
  std::uint32_t slot = 0;  // that its last push named
  std::uint32_t unseen_days = 0;
  float delta_score = 0.0f;
  float show = 0.0f;
  float click = 0.0f;

  bool operator==(const StoredStatistics&) const = default;
};

/// Shape: found[keys], statistics[keys] or none (of tables that keep none), values[keys, width]. What was not
/// found is 0. Of a dense table: no keys, values[width].
struct StoredRows {
  std::size_t width = 0;
  std::vector<bool> found;
  std::vector<StoredStatistics> statistics;
  std::vector<float> values;
};

}  // namespace fleetrun::ps
