// How stale a number of pushes were (ps/sync/staleness.h).
#pragma once

#include <algorithm>
#include <cstdint>

namespace fleetrun::ps {

struct StalenessCounts {
  std::uint64_t pushes = 0;
  /// Of all of them together.
  std::uint64_t total = 0;
  std::uint64_t highest = 0;

  void add(const StalenessCounts& other) noexcept {
    pushes += other.pushes;
    total += other.total;
    highest = std::max(highest, other.highest);
  }
  double mean() const noexcept {
    return pushes == 0 ? 0.0 : static_cast<double>(total) / static_cast<double>(pushes);
  }
  bool operator==(const StalenessCounts&) const = default;
};

}  // namespace fleetrun::ps
