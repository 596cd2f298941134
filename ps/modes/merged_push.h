// Several pushes as one: their keys and gradients one after the other,
// which whoever sends or applies it adds up by key.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "ps/client/step_client.h"

namespace fleetrun::ps {

/// Owns what its push names.
class MergedPush {
 public:
  /// Each gradient times `scale`: 1 / number of pushes makes the mean, in which a key that some lack counts
  /// as zero there. Shows and clicks are counts, and stay what they are.
  /// Throws: Error(config) for dense gradients of one table that differ in size.
  MergedPush(std::span<const Push* const> pushes, float scale);
  MergedPush(const MergedPush&) = delete;
  MergedPush& operator=(const MergedPush&) = delete;

  const Push& push() const noexcept { return push_; }

 private:
  struct Rows {
    std::vector<std::uint64_t> keys;
    std::vector<float> gradients;
    /// By position; empty while every push leaves them out.
    std::vector<float> shows, clicks;
    std::uint16_t slot = 0;
  };
  // By table, so that two runs send the same.
  std::map<std::uint32_t, Rows> sparse_;
  std::map<std::uint32_t, std::vector<float>> dense_;
  Push push_;
};

}  // namespace fleetrun::ps
