// How much memory the container of this process may have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fleetrun {

/// The least that the process's cgroups, and those above them, allow, in bytes: memory.max of version 2,
/// memory.limit_in_bytes of version 1. nullopt: none of them has a limit. `root` is for tests: what stands
/// before /proc and /sys.
std::optional<std::uint64_t> cgroup_memory_limit(const std::string& root = {});

}  // namespace fleetrun
