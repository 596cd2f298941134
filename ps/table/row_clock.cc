#include "ps/table/row_clock.h"

#include <time.h>

#include <algorithm>

namespace fleetrun::ps {
namespace {

std::int64_t seconds_of(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec;
}

}  // namespace

// Time that the machine sleeps counts, too.
std::uint32_t seconds_now() noexcept {
  static const std::int64_t started = seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME);
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(started + seconds_of(CLOCK_BOOTTIME), 1, UINT32_MAX));
}

std::uint32_t time_after_load(std::uint32_t then, std::uint32_t saved_at, std::uint32_t now,
                              std::uint32_t expire_seconds) noexcept {
  if (then == 0) return now;
  const std::uint64_t age = saved_at > then ? saved_at - then : 0;
  const std::uint32_t pause = now > saved_at ? std::min(now - saved_at, expire_seconds / 2) : 0;
  return now - static_cast<std::uint32_t>(std::min<std::uint64_t>(now - 1, age + pause));
}

}  // namespace fleetrun::ps
