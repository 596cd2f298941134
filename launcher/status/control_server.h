// The control socket of a running job: answers `fleetrun status|stop|top|attach` and scripts of the user's.
//
// A unix stream socket POD.sock beside the job's entry (launcher/host/run_directory), mode 0600; the kernel
// says who has connected (SO_PEERCRED), and anybody but this user and root is turned away. Requests are lines
// of JSON (launcher/status/control_request). What a client does cannot harm the job: at most 32 clients, 64
// KiB per request, 30 s for a request to arrive, 30 s for an answer to be taken, 4 MiB of events for an
// attached client that does not read; who exceeds that is cut off.
// Everything happens in the loop, without blocking.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "launcher/host/run_directory.h"
#include "launcher/model/plan.h"
#include "launcher/status/control_request.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

/// What the supervisor does when somebody asks over the control socket.
/// Called from the loop; nothing may throw.
class ControlHandler {
 public:
  virtual ~ControlHandler() = default;
  /// As after a SIGTERM. While a stop is under way it changes nothing, unless `now`:
  /// asking twice is not a reason to kill.
  virtual void request_stop(const StopRequest& request) = 0;
  /// To the processes that live, of those named.
  virtual void request_signal(const SignalRequest& request) = 0;
  /// Starts the process again by its role's rule. Returns why not; empty: it is under way.
  virtual std::string request_restart(const RestartRequest& request) = 0;
  /// Calls `done` once, now or later: with why not, or, when so many processes serve, with nothing.
  virtual void request_resize(const ResizeRequest& request,
                              std::function<void(std::string why_not)> done) = 0;
  /// Calls `done` once, now or later, with the stacks of all processes as text.
  virtual void request_stacks(std::function<void(std::string text)> done) = 0;
};

struct ControlLimits {
  std::size_t clients = 32, request_bytes = 65'536, unread_bytes = 4'194'304;
  std::chrono::milliseconds patience{
      30'000};  // with a request that is not there, an answer that is not taken
};

class ControlServer {
 public:
  virtual ~ControlServer() = default;
  /// Sends `line` (with its newline) to every attached client.
  virtual void publish(const std::string& line) = 0;
  virtual bool has_attached() const noexcept = 0;
  /// The job is over: what attached clients have not been sent is sent,
  /// for 200 ms at most, and all are cut off.
  virtual void finish() = 0;
};

/// Listens. `handler` and `plan` outlive the server; `status` gives the job's status as JSON.
/// Throws: Error(host) when the socket cannot be made.
std::unique_ptr<ControlServer> start_control(boost::asio::io_context& loop, const RunEntry& entry,
                                             const Plan& plan, ControlHandler& handler,
                                             std::function<std::string()> status,
                                             const ControlLimits& limits = {});

}  // namespace fleetrun::launcher
