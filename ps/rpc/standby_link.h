// Which server holds whose standby, and the way there (ps/server/server_standby.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ps/base/standby.h"
#include "ps/rpc/access.h"
#include "ps/rpc/server_addresses.h"
#include "ps/rpc/transport.h"
#include "runtime/base/standby_ring.h"

namespace fleetrun {
class Environ;
}

namespace fleetrun::ps {

/// Of the server `rank`, whose holder follows from where all servers are now. Where the transport has unix
/// sockets they are tried first.
StandbyOptions standby_at(std::uint32_t rank, const std::shared_ptr<ServerAddresses>& addresses,
                          const Access& access, Transport transport);
/// The same of servers that move between processes.
StandbyOptions standby_beside_at(std::uint32_t rank, const std::shared_ptr<ServerAddresses>& addresses,
                                 const Access& access, Transport transport);

/// FLEETRUN_PS_REPLICAS (0 or 1) and FLEETRUN_PS_CHECKPOINT from a server's environment.
/// Throws: Error(config) for another number, and for one server or none that keeps its state.
StandbyOptions standby_options_of(const Environ& environ, std::uint32_t rank,
                                  const std::shared_ptr<ServerAddresses>& addresses);

}  // namespace fleetrun::ps
