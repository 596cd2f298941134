// The clock of everything that is measured or ordered: it never jumps,
// and is the same for all processes of a host.
#pragma once

#include <time.h>

#include <cstdint>

namespace fleetrun {

/// CLOCK_MONOTONIC in nanoseconds.
inline std::int64_t monotonic_ns() noexcept {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace fleetrun
