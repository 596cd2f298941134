// The two checks on which it rests that no two groups of hosts run the same job: a quorum, and generations
// that are prepared for once. Pure; a file of its own, so that a test can build the state machines with
// broken checks and see the simulator find it (tests/support/broken_fence.cc).
#pragma once

#include <cstddef>
#include <cstdint>

namespace fleetrun::launcher {

/// Whether `here` of `all` nodes are enough. Two majorities have a node in common; exactly half is taken as
/// one when it has the coordinator, which only one half has.
bool is_quorum(std::size_t here, std::size_t all, bool has_coordinator) noexcept;

/// Whether a node that prepared for generation `promised` may prepare for `generation`.
bool may_prepare(std::uint64_t generation, std::uint64_t promised) noexcept;

}  // namespace fleetrun::launcher
