// Waits until every process of a role shows that it is ready. Roles that come after it start then.
//
//   port        its endpoint accepts a connection, or the one that the readiness names ("127.0.0.1:8000")
//   log_line    a whole line of its log matches the regular expression somewhere
//   descriptor  it writes a line (at least a newline) to FLEETRUN_READY_FD
//   none        at once
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launcher/model/readiness_rule.h"
#include "runtime/base/endpoint.h"
#include "runtime/base/unique_fd.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

/// Where one process of the role shows it; of these, what the role's readiness looks at has to be there.
struct ReadySign {
  std::size_t index = 0;  // of the process, in the plan
  Endpoint endpoint;
  std::string log;              // path
  std::uint64_t log_start = 0;  // bytes that were there before this start
  UniqueFd descriptor;          // the reading end of ready_pipe()
};

class ReadinessProbe {
 public:
  virtual ~ReadinessProbe() = default;
  /// Does not wait for this process any more: it has ended well.
  virtual void forget(std::size_t index) = 0;
  /// Nobody wants to know any more: `on_done` is not called.
  virtual void stop() = 0;
};

/// Calls `on_done(true)` once all are ready, or `on_done(false)` after `timeout`; never from within this
/// call. The readiness probe has to live as long as the loop runs, or be stopped.
/// Throws: Error(host) when a log cannot be watched.
std::unique_ptr<ReadinessProbe> watch_role(boost::asio::io_context& loop, const Readiness& readiness,
                                           std::vector<ReadySign> signs, std::chrono::milliseconds timeout,
                                           std::function<void(bool all)> on_done);

/// Reading end, for ReadySign, and writing end, for the process (FLEETRUN_READY_FD); both close on exec.
/// Throws: Error(host).
std::pair<UniqueFd, UniqueFd> ready_pipe();

}  // namespace fleetrun::launcher
