// Why a process failed, as a value: what kind of failure it was and how to say it. Pure.
#pragma once

#include <string>
#include <string_view>

namespace fleetrun::launcher {

/// What the restart rules tell apart; each kind has a budget of its own.
enum class FailureKind { crash, out_of_memory, preemption, hang, not_started };

/// "crash", "oom", "preemption", "hang", "not_started": as flags and files spell it.
constexpr std::string_view to_string(FailureKind kind) noexcept {
  constexpr std::string_view kNames[] = {"crash", "oom", "preemption", "hang", "not_started"};
  return kNames[static_cast<int>(kind)];
}

struct Cause {
  FailureKind kind = FailureKind::crash;
  std::string text;       // one sentence without its subject: "was killed by SIGKILL"
  std::string detail;     // the numbers, the block of the log
  std::string signature;  // equal for the same crash: numbers, addresses and pids are folded
  std::string hint;

  bool operator==(const Cause&) const = default;
};

}  // namespace fleetrun::launcher
