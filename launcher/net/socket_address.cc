#include "launcher/net/socket_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#include <memory>

namespace fleetrun::launcher {
namespace {

constexpr int kBacklog = 4096;  // thousands of agents come at the same moment

UniqueFd without(UniqueFd fd) {
  const int why = errno;
  fd.reset();
  errno = why;
  return fd;
}

template <class Ask>
std::optional<SocketAddress> asked(Ask ask) {
  SocketAddress address;
  address.length = sizeof address.storage;
  if (ask(reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) return std::nullopt;
  return address;
}

}  // namespace

std::optional<SocketAddress> numeric_address(const Endpoint& endpoint) {
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &wanted, &found) != 0)
    return std::nullopt;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  SocketAddress address;
  address.length = found->ai_addrlen;
  ::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  return address;
}

Endpoint to_endpoint(const SocketAddress& address) {
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "0";
  ::getnameinfo(address.raw(), address.length, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  return {host, static_cast<std::uint16_t>(std::stoi(port))};
}

SocketAddress with_port(SocketAddress address, std::uint16_t port) {
  if (address.family() == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(address.storage).sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in&>(address.storage).sin_port = htons(port);
  return address;
}

bool is_loopback(const SocketAddress& address) noexcept {
  if (address.family() == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr.s_addr) >> 24 == 127;
  if (address.family() != AF_INET6) return false;
  const in6_addr& bytes = reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&bytes) || (IN6_IS_ADDR_V4MAPPED(&bytes) && bytes.s6_addr[12] == 127);
}

bool is_link_local(const SocketAddress& address) noexcept {
  if (address.family() == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr.s_addr) >> 16 == 0xA9FE;
  return address.family() == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr);
}

bool is_any(const SocketAddress& address) noexcept {
  if (address.family() == AF_INET)
    return reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr.s_addr == INADDR_ANY;
  return address.family() == AF_INET6 &&
         IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr);
}

std::optional<SocketAddress> local_address(int socket) {
  return asked([&](sockaddr* address, socklen_t* length) { return ::getsockname(socket, address, length); });
}

std::optional<SocketAddress> peer_address(int socket) {
  return asked([&](sockaddr* address, socklen_t* length) { return ::getpeername(socket, address, length); });
}

std::optional<SocketAddress> address_facing(const SocketAddress& other) {
  const UniqueFd fd(::socket(other.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  // Connecting a datagram socket sends nothing: it makes the kernel choose a route.
  const SocketAddress there = with_port(other, 9);
  if (!fd || ::connect(fd.value(), there.raw(), there.length) != 0) return std::nullopt;
  const auto own = local_address(fd.value());
  return own && !is_any(*own) ? std::optional(with_port(*own, 0)) : std::nullopt;
}

bool may_be_own(const SocketAddress& address) {
  if (is_loopback(address) || is_any(address)) return true;
  const auto own = address_facing(address);  // to itself, a host goes from that very address
  return own && to_endpoint(*own).host == to_endpoint(address).host;
}

UniqueFd listening_socket(const SocketAddress& address) {
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  const int on = 1;
  // Connections of a past job may linger on the port; whoever listens there still keeps others out.
  ::setsockopt(fd.value(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AF_INET6) ::setsockopt(fd.value(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(fd.value(), address.raw(), address.length) != 0 || ::listen(fd.value(), kBacklog) != 0)
    return without(std::move(fd));
  return fd;
}

UniqueFd connecting_socket(const SocketAddress& address) {
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  if (::connect(fd.value(), address.raw(), address.length) != 0 && errno != EINPROGRESS)
    return without(std::move(fd));
  return fd;
}

}  // namespace fleetrun::launcher
