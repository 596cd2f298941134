// TCP ports that are held until the process that needs them is started.
//
// A lease is a bound socket that does not listen: nobody else gets the port meanwhile. Ports that fleetrun
// chooses lie outside the range from which the kernel serves outgoing connections, so that none of those
// takes the port between the release and the process's own bind.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/endpoint.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

/// Whether `host` (an address, or a name such as "localhost") is this machine.
bool is_this_host(const std::string& host);

class PortLeases {
 public:
  /// Leases a free port at `host`.
  /// Throws: Error(host) when `host` is not an address of this machine or there is no port left.
  Endpoint lease_free(const std::string& host);

  /// Leases just this endpoint. False when something listens there already.
  /// Throws: Error(host) when it cannot be bound for another reason (not our address, a privileged port).
  bool lease(const Endpoint& endpoint);

  /// Lets go of it; of one that is not held: nothing.
  void release(const Endpoint& endpoint) { held_.erase(endpoint); }

 private:
  std::map<Endpoint, UniqueFd> held_;
};

/// "32768\t60999\n" → the range; nullopt for anything else.
std::optional<std::pair<int, int>> parse_port_range(const std::string& text);

}  // namespace fleetrun::launcher
