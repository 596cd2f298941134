// Everything that happens in a job, for those who tell about it: the LAUNCH lines, the event log, the status.
//
// The supervisor gives each event to each observer, in the order in which things happened. Times are
// CLOCK_MONOTONIC in nanoseconds. Processes are named by their index in the plan.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "launcher/model/failure_cause.h"
#include "launcher/model/restart_policy.h"
#include "runtime/base/exit_reason.h"

namespace fleetrun::launcher {

namespace event {

/// How the pod is held. `why_not_more` says what kept it from a higher level; empty at the highest.
struct Contained {
  std::string level, cgroup, why_not_more;
  pid_t init_pid = -1;
};

/// Attempts of the job are counted from 0, by one counter: a process that is restarted alone counts too.
struct AttemptBegan {
  int attempt = 0;
};

struct ProcessStarted {
  std::size_t index = 0;
  pid_t pid = -1;  // as this host sees it
  int attempt = 0;
  std::int64_t at = 0;
};

struct ProcessExited {
  std::size_t index = 0;
  pid_t pid = -1;
  int attempt = 0;
  ExitReason reason;
  bool asked = false;  // it had been told to stop
  std::int64_t at = 0;
  std::int64_t max_rss_kib = 0;
};

struct ProcessNotStarted {
  std::size_t index = 0;
  int attempt = 0;
  std::string stage;
  int error = 0;
};

/// Every process of the plan runs.
struct AllRunning {};

/// Ranks go on without a restart of all (--on_failure=replace): `seats` are their processes, by rank.
/// `newcomers` are the ranks of those that have no state of the training yet.
struct GenerationBegan {
  struct Replaced {
    int rank = 0;
    std::size_t lost = 0, by = 0;
  };
  int generation = 0;
  std::int64_t step = -1;  // the furthest that anybody has come; -1: unknown
  std::vector<std::size_t> seats;
  std::vector<int> newcomers;
  std::vector<Replaced> replaced;  // since the generation before
};

struct RoleReady {
  std::size_t role = 0;
};

/// All that still live were asked to end.
struct StopBegan {
  std::string why;
  std::vector<std::size_t> waiting_for;
};

/// Time is up, and these are killed.
struct GraceElapsed {
  std::vector<std::size_t> still_alive;
};

struct FailureExplained {
  std::size_t index = 0;
  int attempt = 0;
  Cause cause;
};

struct RestartDecided {
  RestartScope scope = RestartScope::group;
  std::size_t index = 0;  // the process that failed
  int next_attempt = 0;
  std::chrono::milliseconds backoff{};
  std::string why;
};

/// There are restarts in general, but not for this failure.
struct GaveUp {
  std::string why;
};

/// fleetrun got a signal.
struct SignalReceived {
  int number = 0;
  bool again = false;  // a stop was under way already
};

/// A signal went on to the processes.
struct SignalForwarded {
  int number = 0;
};

struct HangFound {
  std::vector<std::size_t> silent;         // all without a sign of life
  std::string report;                      // the stacks, equal ones together
  std::vector<std::size_t> culprits = {};  // those of them that are ended for it
  std::string why = {};                    // of the first: "sent no heartbeat for 30 s"
};

/// A failure was injected: where it is a signal to a process, `signal` (0: none) to process `index`.
struct Injected {
  std::string what;
  std::size_t index{};
  int signal{};
};

/// A process that SIGKILL does not end.
struct Unkillable {
  pid_t pid = -1;
  std::string why;
};

/// With --log_through: a process's log began to lose what it writes. `error` is why it cannot be written; 0:
/// old parts are removed to keep to the cap.
struct LogsTruncated {
  std::size_t index = 0;
  std::uint64_t bytes = 0;  // so far
  int error = 0;
};

struct Warning {
  std::string text;
};

/// Servers move between their processes, of which there are to be `to` (--server_num=2:5): so many have.
struct ServersMove {
  int from = 0, to = 0;
  int moved = 0, of = 0;
  bool done = false;
  std::int64_t took_ms = 0;
};

// In a job of several hosts.

struct WorldBegan {
  std::uint64_t generation = 0;
  int attempt = 0, trainers = 0, servers = 0;
  std::vector<std::string> hosts;  // by node rank
  std::string hash;
  std::vector<std::string> server_endpoints = {};
};

/// What runs here has to end; `at_once`: it is killed, because this host was cut off from the others.
struct WorldEnded {
  std::string why;
  bool at_once = false;
};

/// What runs here stands still, since this host hears no answer of the others; or it goes on.
struct PodStands {
  bool still = false;
};

/// About the other hosts, for people.
struct News {
  std::string text;
  bool detail = false;
};

struct JobEnded {
  int exit_status = 0;
};

}  // namespace event

using JobEvent =
    std::variant<event::Contained, event::AttemptBegan, event::ProcessStarted, event::ProcessExited,
                 event::ProcessNotStarted, event::AllRunning, event::GenerationBegan, event::RoleReady,
                 event::StopBegan, event::GraceElapsed, event::FailureExplained, event::RestartDecided,
                 event::GaveUp, event::SignalReceived, event::SignalForwarded, event::HangFound,
                 event::Injected, event::Unkillable, event::LogsTruncated, event::Warning, event::WorldBegan,
                 event::WorldEnded, event::PodStands, event::News, event::JobEnded, event::ServersMove>;

class JobObserver {
 public:
  virtual ~JobObserver() = default;
  /// Must neither throw nor block.
  virtual void on_event(const JobEvent& event) = 0;
};

}  // namespace fleetrun::launcher
