// The other side of the control socket: what `fleetrun status|stop|top|attach` talk to a running job with.
//
// Blocking, with a deadline for every answer: a fleetrun that is stopped (SIGSTOP) keeps nobody waiting. One
// that is not may answer late on a busy host, and gets six times as long. One thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "launcher/host/run_directory.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

class ControlClient {
 public:
  /// Throws: Error(network) when nobody listens there.
  explicit ControlClient(const JobEntry& entry);

  /// Sends `request` (a line without its newline) and returns the answer's line.
  /// Throws: Error(timeout) when there is none in time, Error(network) when the job ends first, Error(usage)
  /// with the job's own words when it refuses.
  std::string ask(const std::string& request, std::chrono::milliseconds patience = std::chrono::seconds(5));

  /// Sends `request` alone; its answer comes among the lines.
  /// Throws: as ask().
  void send(const std::string& request, std::chrono::milliseconds patience = std::chrono::seconds(5));

  /// The next whole line of those that have arrived; nullopt: read_more() first.
  std::optional<std::string> next_line();

  /// Reads once, without waiting. False: the other side has closed.
  bool read_more();

  int descriptor() const noexcept { return socket_.value(); }

 private:
  /// Waits until the socket has one of `events`. Throws: Error(timeout).
  void await(short events, std::chrono::milliseconds patience) const;

  std::string who_;  // for messages: "job default (pod abcdef)"
  UniqueFd socket_;
  std::string received_;
};

/// Throws: Error(usage) with the job's own words when the answer is that it refuses.
void check_answer(const std::string& answer);

/// The "status" of an answer, as JSON.
/// Throws: Error(data) when there is none.
std::string status_in(const std::string& answer);

/// What the processes of a job are doing: the stacks of all their threads. Reading them can take seconds.
/// Throws: as ask().
std::string stacks_of(const JobEntry& entry);

}  // namespace fleetrun::launcher
