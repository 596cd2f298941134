// Looks after the processes of a job while they run: hears their heartbeats, and where --hang_timeout asks
// for it notices who hangs (launcher/model/hang_rules),
// reads everybody's stacks (launcher/stacks/stacks) and reports it once.
//
// It is one timer. With --hang_timeout it looks ten times per timeout; when somebody waits for a step, often;
// else now and then, so that channels do not fill up. Files in /proc are read only for processes that were
// quiet since the last look. After a report the culprits are left alone until they are started anew, and the
// others have all their time again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/model/hang_rules.h"
#include "launcher/model/job_event.h"
#include "launcher/run/hang_report.h"
#include "launcher/run/heartbeat.h"
#include "launcher/stacks/stacks.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

/// One process of the plan.
struct WatchedProcess {
  std::string name, role;
  int rank = 0;
  bool serves = false;
};

struct HangWatchSettings {
  HangRules rules;  // timeout 0: heartbeats are heard, and nobody hangs
  StackSettings stacks;
};

/// What the watch calls, from the loop and never from within a call to it.
struct HangWatchCalls {
  /// The size of the process's log.
  std::function<std::int64_t(std::size_t)> log_bytes;
  /// A hang was found.
  std::function<void(const HangReport&, const std::vector<ProcessStacks>&)> on_hang;
  /// A process has reached another step. May be empty; else looks are frequent.
  std::function<void(std::size_t, std::int64_t)> on_step = {};
  /// Gets event::Warning: a straggler, a debugger, a process that came back to life.
  std::function<void(const JobEvent&)> tell;
};

class HangWatch : public JobObserver {
 public:
  /// A descriptor for the process that is about to be started (FLEETRUN_HEARTBEAT_FD), borrowed until it is
  /// told that the process has started; -1 when there is none.
  virtual int open_heartbeat(std::size_t index) = 0;

  /// What the process has said until now.
  virtual const Heartbeat& heartbeat(std::size_t index) = 0;

  /// The greatest step that any process has said, in any attempt.
  virtual std::optional<std::int64_t> progress() = 0;
};

std::unique_ptr<HangWatch> make_hang_watch(boost::asio::io_context& loop,
                                           std::vector<WatchedProcess> processes, HangWatchSettings settings,
                                           HangWatchCalls calls);

}  // namespace fleetrun::launcher
