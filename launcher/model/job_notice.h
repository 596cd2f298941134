// What --on_event tells of a job: a few things that somebody may want to be woken for. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fleetrun::launcher {

/// What is empty or not set is not told.
struct JobNotice {
  enum class Kind { start, failure, restart, end };
  Kind kind = Kind::start;
  std::string process = {};  // "trainer 1"
  std::string host = {};     // in a job of several hosts
  std::string cause = {};    // crash, oom, preemption, hang, not_started
  std::string why = {};      // a sentence
  std::optional<int> attempt = {};
  std::optional<std::int64_t> backoff_ms = {};  // of restart: until it begins
  std::optional<int> exit_status = {};          // of end, and of a failure on another host
};

}  // namespace fleetrun::launcher
