// The clock by which rows expire (TableConfig::expire_seconds): the time of day when the process started, and
// what has passed since, so that nobody's setting of the clock makes rows older while a server runs.
//
// Between the save that rows come from and the server that loads it only the time of day is known, and it may
// have been set in between: time_after_load() says what counts of that.
#pragma once

#include <cstdint>
#include <functional>

namespace fleetrun::ps {

/// Seconds since 1970, never falling; 0 is no time.
using RowClock = std::function<std::uint32_t()>;

std::uint32_t seconds_now() noexcept;

/// What a row's time is on this clock, that was `then` when it was saved at `saved_at`; 0: it had none, it
/// counts from now on. Where the clock has been set back, no time has passed. Of more than half of
/// `expire_seconds` that half counts: rows that were touched within the other half before the save stay,
/// however long the pause was, or whatever a clock says.
std::uint32_t time_after_load(std::uint32_t then, std::uint32_t saved_at, std::uint32_t now,
                              std::uint32_t expire_seconds) noexcept;

}  // namespace fleetrun::ps
