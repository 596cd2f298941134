// How sure a leader may be that its lease still holds at etcd. Pure: time is an argument, of a clock that
// goes on while the machine sleeps and never jumps.
//
// A lease that was asked for, or renewed, at time T lives at least until T + its time to live, since etcd
// counts from a later moment. The leader trusts it for less than that,
// so that its trust ends before another one can be elected.
#pragma once

#include <chrono>
#include <optional>

namespace fleetrun::launcher {

class LeaseClock {
 public:
  explicit LeaseClock(std::chrono::nanoseconds trust) : trust_(trust) {}

  /// The lease is a new one, and nothing is known of it.
  void begin() noexcept { confirmed_.reset(); }
  /// etcd has answered well what was asked at `asked`.
  void confirm(std::chrono::nanoseconds asked) noexcept {
    if (!confirmed_ || *confirmed_ < asked) confirmed_ = asked;
  }
  /// Until when a lease of `time_to_live` lives, so far; 0: nothing is known of it.
  std::chrono::nanoseconds lives_until(std::chrono::nanoseconds time_to_live) const noexcept {
    return confirmed_ ? *confirmed_ + time_to_live : std::chrono::nanoseconds{};
  }
  bool holds(std::chrono::nanoseconds now) const noexcept { return confirmed_ && now - *confirmed_ < trust_; }

 private:
  std::chrono::nanoseconds trust_;
  std::optional<std::chrono::nanoseconds> confirmed_;
};

}  // namespace fleetrun::launcher
