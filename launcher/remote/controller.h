// The controller of a launch over a list of hosts: starts an agent on each, coordinates the job from here,
// shows what the hosts have to say, and ends when everything everywhere has.
//
//   logging in  → every host has a verdict; a refused one ends it here (unless the job is elastic and enough
//                 are left)
//   running     the coordinator has its addresses, agents have their orders; until the job is over
//   ending      agents end; those that do not within a while are cut off, which stops everything there
//   collecting  logs are brought, where asked for
//   leaving     agents are let go
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/cluster/cluster_event.h"
#include "launcher/model/signal_map.h"
#include "launcher/remote/controller_plan.h"
#include "launcher/remote/fan_out.h"

namespace fleetrun::launcher::remote {

/// Where the job is coordinated, as the controller sees it (launcher/cluster).
class ControllerCoordinator {
 public:
  virtual ~ControllerCoordinator() = default;
  /// Where it listens, one per address that was asked for, in their order.
  virtual std::vector<Endpoint> endpoints() const = 0;
  /// The user stops the job with `signal`.
  virtual void stop(int signal) = 0;
  /// The job cannot go on.
  virtual void end(const JobEnd& end) = 0;
};

/// Told what happens, on the loop; also from inside functions of the coordinator.
class ControllerListener {
 public:
  virtual ~ControllerListener() = default;
  /// JobEnded is the last one: everybody who could be told has been.
  virtual void on_event(const ClusterEvent& event) = 0;
  virtual void on_warning(const std::string& text) = 0;
};

/// Starts a coordinator that listens on `addresses`. Throws: Error(host|network).
using StartCoordinator = std::function<std::unique_ptr<ControllerCoordinator>(
    boost::asio::io_context& loop, const std::vector<std::string>& addresses, ControllerListener& listener)>;

/// For people. Called from the loop.
class ControllerObserver {
 public:
  virtual ~ControllerObserver() = default;
  virtual void say(LogLevel level, const std::string& text) = 0;
  /// Whatever the level: the answer to a signal.
  virtual void tell(const std::string& text) = 0;
  /// A LAUNCH line of the launcher on a host.
  virtual void say(const std::string& host, const Log& record) = 0;
  /// For --on_event. The job's end is in the result.
  virtual void notify(const JobNotice& notice) = 0;
};

struct ControllerSettings {
  FanOutSettings fan_out;
  OwnHost own;
  std::string secret;  // 32 bytes
  StartCoordinator start_coordinator;
  std::chrono::milliseconds login_patience{600'000};  // until every host has a verdict
  std::chrono::milliseconds end_patience{45'000};     // of the hosts, once the job is over
  bool hangup_ignored = false;
  SignalMap signals = default_signal_map();
  int output = 1;
};

struct ControllerResult {
  int exit_status = 0;
  JobEnd end;
  bool stopped = false;  // by a signal that came here
  std::string host;      // whose screen that is
  std::string screen;    // what to show of it, the failure screen; may be empty
};

/// Blocks until the job is over and nothing of it is left.
/// Throws: Error(network) that names every host without an agent and why; nothing has run anywhere then.
ControllerResult run_on_hosts(const ControllerPlan& plan, ControllerSettings settings,
                              ControllerObserver& observer);

}  // namespace fleetrun::launcher::remote
