// The key groups of the last pulls. A step pushes gradients for the keys that it pulled, in the same order:
// their groups need not be found again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>

#include "ps/base/key_groups.h"

namespace fleetrun::ps {

/// Threads: any.
class RecentGroups {
 public:
  /// Pulls run ahead of pushes by a step, in several threads of a trainer.
  static constexpr std::size_t kMax = 16;
  /// Of all that are kept; longer batches are not.
  static constexpr std::size_t kMaxKeys = std::size_t{1} << 21;

  void add(std::uint32_t table, std::shared_ptr<const KeyGroups> groups);
  /// The groups of `keys`, and forgets them; nullptr when no pull had just these.
  std::shared_ptr<const KeyGroups> take(std::uint32_t table, std::span<const std::uint64_t> keys);

 private:
  struct Entry {
    std::uint32_t table;
    std::shared_ptr<const KeyGroups> groups;  // shared with the pull that found them
  };

  std::mutex mutex_;
  std::deque<Entry> entries_;  // the oldest first
  std::size_t keys_ = 0;
};

}  // namespace fleetrun::ps
