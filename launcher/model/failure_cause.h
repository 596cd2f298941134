// Why a process failed: in words, and as a kind that a restart policy can go by.
//
//   kind           when
//   out_of_memory  the kernel counted an out-of-memory kill in its cgroup
//                  (never just because it was a SIGKILL)
//   preemption     exit code 75, or a SIGTERM that fleetrun did not send
//   hang           fleetrun ended it because it hung
//   not_started    it never ran: no such file, no permission, no process left
//   crash          everything else
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

constexpr int kRequeueCode = 75;  // of a process that wants to be run again: it was preempted

struct Cause {
  FailureKind kind = FailureKind::crash;
  std::string text;       // one sentence without its subject: "was killed by SIGKILL: out of memory, …"
  std::string detail;     // what is known beside it, numbers for the most part: one fact per line
  std::string signature;  // equal for the same crash: numbers, addresses and pids are folded
  std::string hint;       // an action, or empty
  std::string block{};    // the lines of its log that tell it; empty when none do

  bool operator==(const Cause&) const = default;
};

}  // namespace fleetrun::launcher
