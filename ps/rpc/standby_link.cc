#include "ps/rpc/standby_link.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "ps/client/channel_client.h"
#include "ps/client/observer.h"
#include "ps/rpc/dial.h"
#include "ps/rpc/rpc_channel.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::ps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kConnect{15};  // as long as a silent server may take elsewhere
constexpr int kLookAroundMs = 50;

std::string host_of(const std::string& endpoint) {
  return endpoint.substr(0, endpoint.rfind(':'));
}

std::string name_of_server(std::uint32_t rank) {
  return "server " + std::to_string(rank);
}

// A connection to one server, which has accepted the hello of an observer.
class Link {
 public:
  Link(std::uint32_t rank, std::vector<std::string> endpoints, Access access, Transport transport)
      : rank_(rank), endpoints_(std::move(endpoints)), access_(std::move(access)), transport_(transport) {}

  std::unique_ptr<Channel> connect(const std::atomic<bool>& give_up) const {
    const Clock::time_point deadline = Clock::now() + kConnect;
    auto channel =
        std::make_unique<RpcChannel>(rank_, endpoints_[rank_], make_answers(), RpcChannelOptions{});
    Dial dial = reach(channel->name(), give_up, deadline);
    channel->use(dial);
    const auto endings = std::make_shared<Endings>();
    const auto servers = static_cast<std::uint32_t>(endpoints_.size());
    const auto hello = channel->start_hello(
        make_hello(observer_options(), make_incarnation(), rank_, servers, channel->connection()), endings,
        std::chrono::system_clock::now() + kConnect);
    while (!endings->wait(1, Clock::now() + std::chrono::milliseconds(kLookAroundMs)))
      if (give_up || Clock::now() >= deadline) fail(channel->name(), "it does not answer");
    hello->result();
    return channel;
  }

 private:
  [[noreturn]] static void fail(const std::string& name, const std::string& why) {
    throw Error(ErrorKind::network, name + (why.empty() ? ": nobody listens there" : ": " + why));
  }

  // Who refuses a connection is not there, and is not waited for.
  Dial reach(const std::string& name, const std::atomic<bool>& give_up, Clock::time_point deadline) const {
    std::string why;
    for (const TransportKind kind : {TransportKind::unix_socket, TransportKind::tcp}) {
      if (!offers(transport_, kind)) continue;
      Dial dial(endpoints_[rank_], name, access_, 0, kind);
      for (dial.advance(); !dial.is_connected() && !dial.has_failed(); dial.advance()) {
        if (give_up || Clock::now() >= deadline) fail(name, "it does not answer");
        pollfd wanted = dial.wanted();
        ::poll(&wanted, 1, kLookAroundMs);
      }
      if (dial.is_connected()) return dial;
      why = dial.reason();
    }
    fail(name, why);
  }

  std::uint32_t rank_;
  std::vector<std::string> endpoints_;
  Access access_;
  Transport transport_;
};

}  // namespace

std::uint32_t standby_of(std::uint32_t rank, const std::vector<std::string>& endpoints) {
  if (endpoints.size() < 2)
    throw Error(ErrorKind::config, "a server's standby is another server, and there is one",
                "start two or more: --server_num=2");
  std::vector<std::string> hosts;
  std::map<std::string, std::vector<std::uint32_t>> on;
  std::size_t place = 0;  // among those of its host
  for (std::uint32_t other = 0; other < endpoints.size(); ++other) {
    const std::string host = host_of(endpoints[other]);
    if (!on.contains(host)) hosts.push_back(host);
    if (other == rank) place = on[host].size();
    on[host].push_back(other);
  }
  const auto mine = std::ranges::find(hosts, host_of(endpoints.at(rank))) - hosts.begin();
  if (hosts.size() == 1) ++place;
  const auto& there = on[hosts[(static_cast<std::size_t>(mine) + 1) % hosts.size()]];
  return there[place % there.size()];
}

StandbyOptions standby_at(std::uint32_t rank, const std::vector<std::string>& endpoints, const Access& access,
                          Transport transport) {
  const std::uint32_t holder = standby_of(rank, endpoints);
  StandbyOptions out;
  out.name = name_of_server(holder);
  out.connect = [link = Link(holder, endpoints, access, transport)](const std::atomic<bool>& give_up) {
    return link.connect(give_up);
  };
  return out;
}

StandbyOptions standby_options_of(const Environ& environ, std::uint32_t rank) {
  const std::string replicas = environ.value_or("FLEETRUN_PS_REPLICAS", "0");
  if (replicas == "0" || replicas.empty()) return {};
  if (replicas != "1")
    throw Error(ErrorKind::config, "FLEETRUN_PS_REPLICAS=" + printable(replicas) + " is neither 0 nor 1",
                "a server has one standby, or none");
  if (environ.value_or("FLEETRUN_PS_CHECKPOINT", "").empty())
    throw Error(ErrorKind::config, "FLEETRUN_PS_REPLICAS=1 without FLEETRUN_PS_CHECKPOINT",
                "a standby is for servers that are started again: --ps_checkpoint or --max_restart");
  return standby_at(rank, split(environ.value_or("PADDLE_PSERVERS_IP_PORT_LIST", ""), ','),
                    access_of(environ), transport_of(environ));
}

}  // namespace fleetrun::ps
