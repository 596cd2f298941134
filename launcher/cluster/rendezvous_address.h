// Where the coordinator of a job listens, by the name of its host: seen from that host, the name may stand
// for a loopback address, where nobody else would find it.
#pragma once

#include <string>
#include <vector>

#include "launcher/net/name_lookup.h"

namespace fleetrun::launcher {

/// The address of this host that faces the outside: the source of its default route, else that of its first
/// interface that is up and not the loopback, else 127.0.0.1. Of IPv4 where there is any.
SocketAddress outward_address();

/// Where the coordinator of a job may be, by what its name stands for. A host that knows its own name as a
/// loopback address only (Debian's 127.0.1.1) is reached by others at its outward address: that one is meant.
std::vector<SocketAddress> rendezvous_addresses(const Endpoint& master, const FoundAddresses& found);

/// The first of them in digits; `master` itself where its name is not known. May wait for a name server.
Endpoint rendezvous_endpoint(const Endpoint& master);

}  // namespace fleetrun::launcher
