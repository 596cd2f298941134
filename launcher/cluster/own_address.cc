// What this machine has to be asked before it can meet others: which of its addresses faces them, its name.
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "launcher/cluster/rendezvous_address.h"
#include "launcher/cluster/world_link.h"
#include "launcher/host/port_lease.h"
#include "launcher/net/etcd_address.h"
#include "runtime/base/error.h"
#include "runtime/base/host_name.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

std::string text_of(const sockaddr_storage& address, socklen_t length) {
  char host[NI_MAXHOST] = {};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host, sizeof host, nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return {};
  return host;
}

std::string own_name() {
  const std::string name = host_name();
  return name.empty() ? "this host" : name;
}

/// This host's place in a list of addresses.
int own_rank(const std::vector<std::string>& addresses, const JobConfig& config) {
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (config.host_chosen ? addresses[i] == config.host : is_this_host(addresses[i]))
      return static_cast<int>(i);
  }
  throw Error(
      ErrorKind::config, "this host is not among " + join(addresses, ", "),
      "run fleetrun on those hosts, each with the same list, or use --hosts to start it on them from here");
}

}  // namespace

std::string address_towards(const Endpoint& endpoint) {
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(endpoint.host.c_str(), "9", &wanted, &found);
  if (status != 0)
    throw Error(ErrorKind::config,
                "'" + printable(endpoint.host) + "' is not known here: " + ::gai_strerror(status),
                "use an address, or a name that every host of the job knows");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  for (const addrinfo* one = found; one; one = one->ai_next) {
    const UniqueFd fd(::socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own = {};
    socklen_t length = sizeof own;
    if (!fd || ::connect(fd.value(), one->ai_addr, one->ai_addrlen) != 0 ||
        ::getsockname(fd.value(), reinterpret_cast<sockaddr*>(&own), &length) != 0)
      continue;
    std::string text = text_of(own, length);
    if (!text.empty()) return text;
  }
  throw Error(ErrorKind::host, "there is no route from here to " + printable(endpoint.host),
              "check the address and the network, or say this host's own address with --host");
}

JobConfig settle_rendezvous(JobConfig config) {
  Rendezvous& rendezvous = config.rendezvous;
  if (rendezvous.kind == Rendezvous::Kind::none) return config;
  const bool named = config.host_chosen || !rendezvous.addresses.empty();  // by the user
  if (!rendezvous.addresses.empty()) {
    const int rank = own_rank(rendezvous.addresses, config);
    if (rendezvous.node_rank >= 0 && rendezvous.node_rank != rank)
      throw Error(ErrorKind::config,
                  "the rank of this host is " + std::to_string(rendezvous.node_rank) + ", and " +
                      rendezvous.addresses[static_cast<std::size_t>(rank)] + " has place " +
                      std::to_string(rank) + " in the list of hosts",
                  "leave --rank out");
    rendezvous.node_rank = rank;
    config.host = rendezvous.addresses[static_cast<std::size_t>(rank)];
    config.host_chosen = true;
  }
  if (!config.host_chosen) {
    if (rendezvous.kind == Rendezvous::Kind::etcd)
      config.host = address_towards(parse_etcd_address(rendezvous.etcd).endpoints.front());
    else if (rendezvous.master.port != 0)
      config.host = address_towards(rendezvous_endpoint(rendezvous.master));
    else
      config.host = to_endpoint(outward_address()).host;
  }
  if (rendezvous.node_name.empty()) rendezvous.node_name = named ? config.host : own_name();
  return config;
}

}  // namespace fleetrun::launcher
