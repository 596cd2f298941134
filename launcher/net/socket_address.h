// Addresses of this host and others, as the kernel takes them.
// No names: those are looked up by name_lookup.h.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>

#include "runtime/base/endpoint.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  const sockaddr* raw() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const noexcept { return storage.ss_family; }
};

/// Of an address in digits, with an IPv6 zone or without; nullopt for a name.
std::optional<SocketAddress> numeric_address(const Endpoint& endpoint);

/// In digits: {"10.0.0.2", 4711}, {"fe80::1%eth0", 80}.
Endpoint to_endpoint(const SocketAddress& address);
SocketAddress with_port(SocketAddress address, std::uint16_t port);
/// 127.0.0.0/8, ::1, and the former written as IPv6.
bool is_loopback(const SocketAddress& address) noexcept;
/// 169.254.0.0/16 and fe80::/10: good on one link only.
bool is_link_local(const SocketAddress& address) noexcept;
/// 0.0.0.0 and ::
bool is_any(const SocketAddress& address) noexcept;

/// The two ends of a connected socket; empty where there are none (any more).
std::optional<SocketAddress> local_address(int socket);
std::optional<SocketAddress> peer_address(int socket);

/// The address of this host from which it reaches `other`; nothing is sent. nullopt: there is no way there.
std::optional<SocketAddress> address_facing(const SocketAddress& other);

/// Whether it can be this host's: where the kernel lets programs listen at foreign addresses
/// (ip_nonlocal_bind), being able to listen at one says nothing.
bool may_be_own(const SocketAddress& address);

/// A socket that listens at just this address, and waits for nothing; empty with errno set: EADDRINUSE when
/// somebody else does, EADDRNOTAVAIL when the address is another host's.
UniqueFd listening_socket(const SocketAddress& address);

/// A socket that is being connected, and waits for nothing; empty with errno set.
UniqueFd connecting_socket(const SocketAddress& address);

}  // namespace fleetrun::launcher
