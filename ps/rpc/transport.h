// By which ways a trainer reaches a server.
//
// Every server listens at its endpoint. On the same host it can also be reached through unix sockets whose
// abstract names are made of the address and the port, and which exist for no other host: one for calls over
// gRPC, one to share memory with processes of its own user.
// A trainer takes the best way that its server offers.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "runtime/base/unique_fd.h"

namespace fleetrun {
class Environ;
}

namespace fleetrun::ps {

enum class TransportKind { shared_memory, unix_socket, tcp };

/// Which ways may be taken. A server with `tcp` offers no other, with `unix_socket` no shared memory.
enum class Transport { automatic, shared_memory, unix_socket, tcp };

/// FLEETRUN_PS_TRANSPORT: auto (the default), shm, unix or tcp. Throws: Error(config) for anything else.
Transport transport_of(const Environ& environ);

/// In the order in which a trainer tries them.
std::vector<TransportKind> transport_kinds_of(Transport transport);
bool offers(Transport transport, TransportKind transport_kind) noexcept;

/// What both sides say that their connection is for (HandshakeSettings::purpose).
const char* purpose_of(TransportKind transport_kind) noexcept;

/// The abstract unix address that stands for a numeric address and port.
struct LocalAddress {
  sockaddr_storage address = {};
  socklen_t size = 0;
};
LocalAddress local_address(const sockaddr* address, socklen_t size, TransportKind transport_kind);

/// Listens for the same host's processes beside a socket that listens at an endpoint. No socket when
/// something else has that name: the endpoint is enough.
UniqueFd listen_beside(int socket, TransportKind transport_kind);

}  // namespace fleetrun::ps
