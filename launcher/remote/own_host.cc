#include "launcher/remote/own_host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>

#include <memory>

#include "launcher/model/host_list.h"
#include "runtime/base/host_name.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher::remote {
namespace {

std::string text_of(const sockaddr* address) {
  const socklen_t length = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  char text[NI_MAXHOST] = {};
  return ::getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

std::string_view without_zone(std::string_view address) {
  return address.substr(0, address.find('%'));
}

bool is_loopback(std::string_view name) {
  in_addr address;
  if (::inet_pton(AF_INET, std::string(name).c_str(), &address) == 1)
    return (ntohl(address.s_addr) >> 24) == 127;
  return host_key(name) == "::1";
}

struct FreeList {
  void operator()(ifaddrs* list) const noexcept { ::freeifaddrs(list); }
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};

using Addresses = std::unique_ptr<addrinfo, FreeList>;

Addresses look_up(const std::string& name) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* first = nullptr;
  return Addresses(::getaddrinfo(name.c_str(), "9", &hints, &first) == 0 ? first : nullptr);
}

/// Debian's /etc/hosts gives a host's own name the address 127.0.1.1.
bool leads_here(const OwnHost& own, const std::string& name) {
  const Addresses list = look_up(name);
  for (const addrinfo* one = list.get(); one; one = one->ai_next) {
    const std::string address = text_of(one->ai_addr);
    if (!is_loopback(address) && !own_address(own, address)) return false;
  }
  return list != nullptr;
}

}  // namespace

OwnHost own_host() {
  OwnHost own;
  own.names.insert("localhost");
  if (const std::string name = host_name(); !name.empty()) {
    const std::string key = host_key(name);
    own.names.insert(key);
    own.names.insert(key.substr(0, key.find('.')));
  }
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return own;
  const std::unique_ptr<ifaddrs, FreeList> list(first);
  for (const ifaddrs* one = first; one; one = one->ifa_next) {
    if (!one->ifa_addr || (one->ifa_addr->sa_family != AF_INET && one->ifa_addr->sa_family != AF_INET6))
      continue;
    if (std::string text = text_of(one->ifa_addr); !text.empty()) own.addresses.insert(std::move(text));
  }
  return own;
}

std::optional<std::string> own_address(const OwnHost& own, std::string_view address) {
  const std::string key = host_key(without_zone(address));
  for (const std::string& one : own.addresses) {
    if (host_key(without_zone(one)) == key) return one;
  }
  return std::nullopt;
}

void learn_names(OwnHost& own, const std::vector<RemoteHost>& hosts) {
  for (const RemoteHost& host : hosts) {
    const std::string key = host_key(host.name);
    if (own.names.contains(key) || !own.names.contains(key.substr(0, key.find('.')))) continue;
    if (leads_here(own, host.name)) own.names.insert(key);
  }
}

bool is_own(const OwnHost& own, std::string_view name) {
  return own.names.contains(host_key(name)) || is_loopback(name) || own_address(own, name).has_value();
}

std::optional<std::string> address_towards(const std::string& name) {
  const Addresses list = look_up(name);
  for (const addrinfo* one = list.get(); one; one = one->ai_next) {
    const UniqueFd socket(::socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own = {};
    socklen_t length = sizeof own;
    // Connecting a datagram socket chooses the route and sends nothing.
    if (!socket || ::connect(socket.value(), one->ai_addr, one->ai_addrlen) != 0 ||
        ::getsockname(socket.value(), reinterpret_cast<sockaddr*>(&own), &length) != 0)
      continue;
    if (std::string text = text_of(reinterpret_cast<const sockaddr*>(&own)); !text.empty()) return text;
  }
  return std::nullopt;
}

}  // namespace fleetrun::launcher::remote
