// Which server holds whose standby, and the way there (ps/server/server_standby.cc).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ps/base/standby.h"
#include "ps/rpc/access.h"
#include "ps/rpc/transport.h"

namespace fleetrun {
class Environ;
}

namespace fleetrun::ps {

/// The server that holds the standby of `rank`: one of the next host in the order of `endpoints`, as many to
/// each as that has; on a single host the next server. Throws: Error(config) where there is no other.
std::uint32_t standby_of(std::uint32_t rank, const std::vector<std::string>& endpoints);

/// Of the server `rank`. Where the transport has unix sockets they are tried first.
StandbyOptions standby_at(std::uint32_t rank, const std::vector<std::string>& endpoints, const Access& access,
                          Transport transport);

/// FLEETRUN_PS_REPLICAS (0 or 1), the endpoints and FLEETRUN_PS_CHECKPOINT from a server's environment.
/// Throws: Error(config) for another number, and for one server or none that keeps its state.
StandbyOptions standby_options_of(const Environ& environ, std::uint32_t rank);

}  // namespace fleetrun::ps
