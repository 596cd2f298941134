// TCP ports that are held until the process that needs them is started.
//
// A lease is a bound socket that does not listen: nobody else gets the port meanwhile. Ports that fleetrun
// chooses lie outside the range from which the kernel serves outgoing connections, so that none of those
// takes the port between the release and the process's own bind.
//
// A port that was chosen is also claimed, for the whole job: other fleetruns of this network namespace choose
// others, though it looks free from its release to the process's own bind. A claim is a socket bound to the
// abstract name "fleetrun-port-N"; it goes with fleetrun.
//
// For a process that is known to be ours the lease is never released, so that there is no such moment, not
// even between two starts of it: it is shared. The socket was bound alone and is given SO_REUSEPORT
// afterwards; from then on (Linux; tests/integration/launcher/host/port_lease_test.cc)
//   - a process of the same user that sets SO_REUSEPORT binds and listens beside it,
//     and gets every connection,
//   - everybody else gets EADDRINUSE, with SO_REUSEADDR too, and so does another fleetrun's lease.
// The process finds the endpoint in FLEETRUN_LISTEN.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/endpoint.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

/// Whether `host` (an address, or a name such as "localhost") is this machine.
bool is_this_host(const std::string& host);

/// False for an address of the loopback ("127.0.0.1") where that interface is down.
bool reaches_itself(const std::string& host);

class PortLeases {
 public:
  /// From here on free ports are taken from `first` to `last` only.
  void set_range(int first, int last) { range_ = {first, last}; }

  /// From here on this port is not taken for a free one: the user gave it to something else.
  void leave_out(std::uint16_t port) { left_out_.insert(port); }

  /// Leases a free port at `host`.
  /// Throws: Error(host) when `host` is not an address of this machine or there is no port left.
  Endpoint lease_free(const std::string& host);

  /// Leases just this endpoint. False when something listens there already.
  /// Throws: Error(host) when it cannot be bound for another reason (not our address, a privileged port).
  bool lease(const Endpoint& endpoint);

  /// Keeps holding it, but lets processes of the same user that set SO_REUSEPORT listen there.
  /// Throws: Error(host) when the kernel refuses.
  void share(const Endpoint& endpoint);

  /// Lets go of it, for the process that binds it now; of one that is not held: nothing.
  void release(const Endpoint& endpoint) { held_.erase(endpoint); }

  /// Lets go of it for good, and of the claim on it.
  void give_up(const Endpoint& endpoint) {
    held_.erase(endpoint);
    claims_.erase(endpoint.port);
  }

 private:
  std::map<Endpoint, UniqueFd> held_;
  std::map<std::uint16_t, UniqueFd> claims_;
  std::optional<std::pair<int, int>> range_;
  std::set<std::uint16_t> left_out_;
};

/// "32768\t60999\n" → the range; nullopt for anything else.
std::optional<std::pair<int, int>> parse_port_range(const std::string& text);

}  // namespace fleetrun::launcher
