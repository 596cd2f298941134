#include "launcher/host/port_lease.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/port_range.h"
#include "runtime/base/random_bytes.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::size_t kMaxClaims = 256;  // so that large jobs do not run out of descriptors for it
constexpr int kLowestPort = 10'000, kHighestPort = 65'535;

struct Address {
  sockaddr_storage storage = {};
  socklen_t length = 0;
};

/// The first address of `endpoint.host`. An address is used as it is; only a name asks the resolver.
/// "localhost" is the loopback also where nobody knows the name (a bare root file system has no /etc/hosts).
std::optional<Address> resolve(const Endpoint& endpoint) {
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  if (::getaddrinfo(endpoint.host.c_str(), port.c_str(), &wanted, &found) != 0) {
    if (endpoint.host == "localhost") return resolve({"127.0.0.1", endpoint.port});
    return std::nullopt;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  Address address;
  address.length = found->ai_addrlen;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  return address;
}

/// A socket bound to `address`, not listening; empty with errno set when it cannot be bound.
UniqueFd bound(const Address& address, bool reuse) {
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return fd;
  const int on = 1;
  if (reuse) ::setsockopt(fd.value(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.value(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) == 0) return fd;
  const int error = errno;
  fd.reset();
  errno = error;
  return fd;
}

/// The claim on a port; empty with errno set, which is EADDRINUSE when another fleetrun has it.
UniqueFd claimed(std::uint16_t port) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return fd;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string name = "fleetrun-port-" + std::to_string(port);
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // behind a zero byte: the name is abstract
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd.value(), reinterpret_cast<const sockaddr*>(&address), length) == 0) return fd;
  const int error = errno;
  fd.reset();
  errno = error;
  return fd;
}

std::string read_port_range() {
  char text[64] = {};
  const UniqueFd fd(::open("/proc/sys/net/ipv4/ip_local_port_range", O_RDONLY | O_CLOEXEC));
  if (fd && ::read(fd.value(), text, sizeof text - 1) <= 0) text[0] = 0;
  return text;
}

[[noreturn]] void refuse_address(const std::string& host) {
  throw Error(ErrorKind::host, "'" + printable(host) + "' is not an address of this host",
              host == "127.0.0.1" ? "name another one with --host, such as --host=::1"
                                  : "use an address of this host");
}

}  // namespace

std::optional<std::pair<int, int>> parse_port_range(const std::string& text) {
  return parse_ports(std::string_view(text).substr(0, text.find('\n')), '\t');
}

bool reaches_itself(const std::string& host) {
  if (!host.starts_with("127.")) return true;
  const auto address = resolve({host, 9});
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  // Connecting a datagram socket sends nothing: it asks the kernel for a route.
  return !address || !fd ||
         ::connect(fd.value(), reinterpret_cast<const sockaddr*>(&address->storage), address->length) == 0;
}

bool is_this_host(const std::string& host) {
  const auto address = resolve({host, 0});
  return address && (bound(*address, false) || errno != EADDRNOTAVAIL);
}

Endpoint PortLeases::lease_free(const std::string& host) {
  const auto outgoing = parse_port_range(read_port_range());
  const auto is_outgoing = [&](int port) {
    return outgoing && port >= outgoing->first && port <= outgoing->second;
  };
  auto address = resolve({host, 0});
  if (!address) refuse_address(host);
  // First every port outside the kernel's range, from a random one on; if all of them are taken, any other.
  // Drawn again while it falls into that range: else most jobs would start with the first port above it, and
  // one could take it from another between the release and the process's own bind.
  const int lowest = range_ ? range_->first : kLowestPort;
  const int ports = (range_ ? range_->second : kHighestPort) - lowest + 1;
  int start = static_cast<int>(random_number<unsigned>() % static_cast<unsigned>(ports));
  for (int draw = 0; draw < 100 && is_outgoing(lowest + start); ++draw)
    start = static_cast<int>(random_number<unsigned>() % static_cast<unsigned>(ports));
  // Last those that were let go for a process of this job: it may not have bound its port yet, or never does.
  for (const auto& [mine_too, outgoing_too] :
       {std::pair(false, false), {false, true}, {true, false}, {true, true}}) {
    for (int i = 0; i < ports; ++i) {
      const int port = lowest + (start + i) % ports;
      const Endpoint endpoint = {host, static_cast<std::uint16_t>(port)};
      if (is_outgoing(port) != outgoing_too || claims_.contains(endpoint.port) != mine_too) continue;
      if (held_.contains(endpoint) || left_out_.contains(endpoint.port)) continue;
      if (address->storage.ss_family == AF_INET6)
        reinterpret_cast<sockaddr_in6&>(address->storage).sin6_port = htons(endpoint.port);
      else
        reinterpret_cast<sockaddr_in&>(address->storage).sin_port = htons(endpoint.port);
      UniqueFd claim;
      if (claims_.size() < kMaxClaims && !claims_.contains(endpoint.port)) {
        claim = claimed(endpoint.port);
        if (!claim && errno == EADDRINUSE) continue;
      }
      UniqueFd fd = bound(*address, false);  // without reuse, so that two leases exclude each other
      if (fd) {
        held_[endpoint] = std::move(fd);
        if (claim) claims_[endpoint.port] = std::move(claim);
        return endpoint;
      }
      if (errno == EADDRNOTAVAIL) refuse_address(host);
      if (errno == EMFILE)
        throw Error(ErrorKind::host,
                    "no descriptor is left to hold a port, after " + std::to_string(held_.size()),
                    "raise the limit on open files (ulimit -Hn), or start fewer processes");
      if (errno != EADDRINUSE && errno != EACCES) check_errno(-1, "bind", "leasing a port at " + host);
    }
  }
  throw Error(
      ErrorKind::host,
      (range_ ? "no port from " + std::to_string(range_->first) + " to " + std::to_string(range_->second)
              : std::string("no port")) +
          " is free at " + host,
      range_ ? "widen --port_range" : "end other programs that hold ports");
}

bool PortLeases::lease(const Endpoint& endpoint) {
  const auto address = resolve(endpoint);
  if (!address) refuse_address(endpoint.host);
  UniqueFd fd = bound(*address, false);
  if (!fd && errno == EADDRINUSE)
    fd = bound(*address, true);  // connections of a past run may still linger on it
  if (!fd && errno == EADDRINUSE) return false;
  if (!fd && errno == EADDRNOTAVAIL) refuse_address(endpoint.host);
  if (!fd && errno == EACCES)
    throw Error(ErrorKind::host,
                "port " + std::to_string(endpoint.port) + " of " + to_string(endpoint) + " is only for root",
                "use a port above 1023");
  check_errno(fd ? 0 : -1, "bind", "leasing " + to_string(endpoint));
  held_[endpoint] = std::move(fd);
  return true;
}

void PortLeases::share(const Endpoint& endpoint) {
  const auto found = held_.find(endpoint);
  if (found == held_.end()) return;
  const int on = 1;
  check_errno(::setsockopt(found->second.value(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on), "setsockopt",
              "sharing " + to_string(endpoint));
}

}  // namespace fleetrun::launcher
