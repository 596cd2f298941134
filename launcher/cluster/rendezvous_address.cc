#include "launcher/cluster/rendezvous_address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include <algorithm>
#include <memory>

namespace fleetrun::launcher {
namespace {

// Addresses of documentation: nobody's, so the way there is the default route.
constexpr char kOutside4[] = "192.0.2.1", kOutside6[] = "2001:db8::1";

std::optional<SocketAddress> first_interface_address(int family) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || entry->ifa_addr->sa_family != family || !(entry->ifa_flags & IFF_UP)) continue;
    SocketAddress address;
    address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    ::memcpy(&address.storage, entry->ifa_addr, address.length);
    if (!is_loopback(address) && !is_link_local(address)) return address;
  }
  return std::nullopt;
}

}  // namespace

SocketAddress outward_address() {
  for (const char* outside : {kOutside4, kOutside6}) {
    const int family = outside == kOutside4 ? AF_INET : AF_INET6;
    if (const auto own = address_facing(numeric_address({outside, 9}).value()); own && !is_loopback(*own))
      return *own;
    if (const auto own = first_interface_address(family)) return *own;
  }
  return numeric_address({"127.0.0.1", 0}).value();
}

std::vector<SocketAddress> rendezvous_addresses(const Endpoint& master, const FoundAddresses& found) {
  const bool is_plain = master.host == "localhost" || numeric_address(master).has_value();
  if (is_plain || !std::all_of(found.addresses.begin(), found.addresses.end(), is_loopback))
    return found.addresses;
  const SocketAddress outward = outward_address();
  if (is_loopback(outward)) return found.addresses;  // a host without a network
  return {with_port(outward, master.port)};
}

Endpoint rendezvous_endpoint(const Endpoint& master) {
  const FoundAddresses found = look_up_now(master);
  return found.addresses.empty() ? master : to_endpoint(rendezvous_addresses(master, found).front());
}

}  // namespace fleetrun::launcher
