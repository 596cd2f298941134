// What this machine has to be asked before it can meet others: which of its addresses faces them, its name.
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "launcher/cluster/rendezvous_address.h"
#include "launcher/cluster/world_link.h"
#include "launcher/host/port_lease.h"
#include "launcher/net/etcd_address.h"
#include "launcher/net/socket_address.h"
#include "runtime/base/error.h"
#include "runtime/base/host_name.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

constexpr std::chrono::milliseconds kNextLookup{500};

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

/// The hosts of a job meet at another host, and this one is told that it is the job's only one: it would
/// train alone, as each of the others would.
void check_place_of_one(JobConfig& config) {
  const std::string& place = config.rendezvous.master.host;
  if (place.empty() || config.host_list.given() || is_this_host(place)) return;
  const std::string what = printable(place) + " is not this host, and the job has one host";
  if (config.torchrun)
    throw Error(ErrorKind::config, "--rdzv-endpoint: " + what,
                "say how many hosts it has, --nnodes=N; for a job on this host alone leave the endpoint out");
  config.notes.push_back("--master has no effect: " + what + "; --nnodes=N says that it has several");
}

/// A name may become known: those of pods and containers do, a while after these have begun.
void wait_for_name(const std::string& host, const JobConfig& config, const WarnOfName& warn) {
  if (config.dry_run != DryRun::no) return;
  const auto until = std::chrono::steady_clock::now() + config.rendezvous.join_timeout;
  for (bool told = false;; told = true) {
    const FoundAddresses found = look_up_now({host, 9});
    if (!found.addresses.empty() || std::chrono::steady_clock::now() >= until) return;
    if (!told) warn("the name " + host + " is not known here: " + found.failure + "; trying again");
    std::this_thread::sleep_for(kNextLookup);
  }
}

/// `host`, by which others reach this one; where that name stands for a loopback address here (Debian's
/// 127.0.1.1), another address of it, or the outward one.
std::string outward_name(const std::string& host) {
  const FoundAddresses found = look_up_now({host, 9});
  const auto& addresses = found.addresses;
  if (host == "localhost" || addresses.empty() || !is_loopback(addresses.front())) return host;
  const auto outer = std::find_if_not(addresses.begin(), addresses.end(), is_loopback);
  return to_endpoint(outer != addresses.end() ? *outer : rendezvous_addresses({host, 9}, found).front()).host;
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
  const auto address = numeric_address(endpoint);
  const bool lacks_zone = address && address->family() == AF_INET6 && is_link_local(*address) &&
                          endpoint.host.find('%') == std::string::npos;
  throw Error(ErrorKind::host, "there is no route from here to " + printable(endpoint.host),
              lacks_zone ? "an address of one link needs its interface here, as in " + endpoint.host + "%eth0"
                         : "check the address and the network, or say this host's own address with --host");
}

JobConfig settle_rendezvous(JobConfig config, const WarnOfName& warn) {
  Rendezvous& rendezvous = config.rendezvous;
  if (rendezvous.kind == Rendezvous::Kind::none) {
    check_place_of_one(config);
    return config;
  }
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
  const std::string name = config.host;
  if (config.host_chosen) config.host = outward_name(name);
  if (!config.host_chosen) {
    const bool etcd = rendezvous.kind == Rendezvous::Kind::etcd;
    const Endpoint place = etcd ? parse_etcd_address(rendezvous.etcd).endpoints.front() : rendezvous.master;
    if (place.port != 0) {
      wait_for_name(place.host, config, warn);
      config.host = address_towards(etcd ? place : rendezvous_endpoint(place));
    } else {
      config.host = to_endpoint(outward_address()).host;
    }
  }
  if (rendezvous.node_name.empty()) rendezvous.node_name = named ? name : own_name();
  return config;
}

}  // namespace fleetrun::launcher
