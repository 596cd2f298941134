// The phases of a group's calls, as one rank goes through them,
// and the check that all ranks make the same call.
//
// A rank that has published phase p has read all that it reads of the others' slots of phase p - 2 and
// before: the calls see to that (collective/cpu/shared_calls.cc). So the slot of phase p - kSlots is free for
// phase p when everybody has published phase p - 2, which is nearly always known before it is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "collective/cpu/shared_group.h"

namespace fleetrun::collective {

/// Threads: one at a time.
class SharedRounds {
 public:
  explicit SharedRounds(SharedGroup& group) : group_(&group) {}

  SharedGroup& group() noexcept { return *group_; }

  /// Begins a call. `extent` is told to the others: max_extent().
  void begin(const Call& call, std::uint64_t extent = 0);
  /// The phase that is written next.
  std::uint64_t phase() const noexcept { return phase_; }
  /// This rank's slot of that phase, as soon as it is free.
  std::byte* stage();
  /// What this rank has written is there for the others.
  void publish();
  /// Waits until all ranks have published `phase`. Throws: where their calls differ, and the group's failure.
  void await(std::uint64_t phase);
  const std::byte* slot(int rank, std::uint64_t phase) const noexcept {
    return group_->segment().slot(rank, static_cast<std::uint32_t>(phase % kSlots));
  }
  std::byte* own_slot(std::uint64_t phase) noexcept {
    return group_->segment().slot(group_->rank(), static_cast<std::uint32_t>(phase % kSlots));
  }
  /// After the call's first phase: the largest extent of all ranks.
  std::uint64_t max_extent() const noexcept { return max_extent_; }

 private:
  SharedLine& line(int rank, std::uint64_t phase) const noexcept {
    return group_->of(rank).lines[phase % kSlots];
  }
  bool has_published(int rank, std::uint64_t phase) const noexcept {
    const std::uint32_t stamp = line(rank, phase).stamp.load(std::memory_order_acquire);
    return static_cast<std::int32_t>(stamp - static_cast<std::uint32_t>(phase + 1)) >= 0;
  }
  void claim();
  void reach(std::uint64_t phase);
  [[noreturn]] void miss(std::uint64_t phase);
  void compare();
  [[noreturn]] void differ();

  SharedGroup* group_;
  std::uint64_t phase_ = 0;
  std::uint64_t reached_ = 0;  // all others have published all phases before this one
  std::uint64_t calls_ = 0;
  std::uint64_t first_phase_ = 0;
  std::uint64_t extent_ = 0, max_extent_ = 0;
  bool is_compared_ = false;
  bool is_claimed_ = false;
  CallTag tag_;
  std::optional<SharedGroup::Clock::time_point> deadline_;
};

}  // namespace fleetrun::collective
