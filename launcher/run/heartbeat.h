// Heartbeats: what processes say about themselves while they work, so that a hang is told from a long step.
//
// A process that finds FLEETRUN_HEARTBEAT_FD writes to that descriptor, in any language:
//
//   step 120\n        it has reached step 120
//   step 120 0.35\n   and the step's own work, without waiting for others, took 0.35 s
//   beat\n            it lives; any other bytes say the same
//   beat loss=0.41 examples_per_second=1200\n   values, behind either, as --metrics serves them
//
// A value's name is UTF-8 of at most 64 bytes, without blanks and '='; the value stays until another of that
// name comes. A line has at most 1024 bytes; of one process 32 names are kept.
//
// The descriptor never blocks (what does not fit is dropped: EAGAIN) and never raises SIGPIPE, whatever
// becomes of fleetrun: it is a pipe whose end in the process can read too.
// fleetrun reads it when it looks, not when it is written to.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

/// What a process has said so far.
struct Heartbeat {
  std::uint64_t beats = 0;             // lines, and pieces of lines
  std::optional<std::int64_t> step;    // the last one; it may go back
  std::optional<double> work_seconds;  // of the last step that came with its time
  std::map<std::string, double> values = {};
  bool operator==(const Heartbeat&) const = default;
};

/// Bytes of one process → Heartbeat. Pure; split anywhere, they mean the same but for the number of beats.
class HeartbeatParser {
 public:
  void feed(std::string_view bytes);
  const Heartbeat& heartbeat() const noexcept { return heartbeat_; }

 private:
  void on_line(std::string_view line);
  void on_value(std::string_view word);

  Heartbeat heartbeat_;
  std::string partial_;  // bounded; the rest of a line that is too long is not a step
};

/// What a process of the plan has said until now; empty where nobody listens.
using HeartbeatReader = std::function<const Heartbeat&(std::size_t index)>;

/// The channels of a job's processes.
class Heartbeats {
 public:
  explicit Heartbeats(std::size_t processes) : channels_(processes) {}

  /// A new channel for a process that is about to be started; what the one before it said is forgotten.
  /// Returns the descriptor for the process, borrowed, open until started(index); -1 when the machine gives
  /// none (then the process has no heartbeat).
  int open(std::size_t index);

  /// The process has its descriptor.
  void started(std::size_t index);

  /// What the process has said until now, also after its end.
  const Heartbeat& read(std::size_t index);

 private:
  struct Channel {
    UniqueFd ours, theirs;
    HeartbeatParser parser;
  };
  std::vector<Channel> channels_;
};

}  // namespace fleetrun::launcher
