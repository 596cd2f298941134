// Windows that are made wider on purpose, so that a test can look into them.
//
//   FLEETRUN_FAILPOINT=NAME=DURATION[,…]      init-record-delay   after the fork, before init has recorded it
//                                             init-report-delay   after its gate is open, before its report
//                                             init-kill-patience  with what was killed, until it is named
//                                             init-leisure        of what a good job left, until it is killed
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/environ.h"

namespace fleetrun::launcher {

/// The duration of the failpoint `name` in milliseconds; `usual` where the environment does not set it.
std::int64_t failpoint_ms(const Environ& environment, std::string_view name, std::int64_t usual = 0);

/// Does nothing for 0.
void pause_at_failpoint(std::int64_t milliseconds) noexcept;

}  // namespace fleetrun::launcher
