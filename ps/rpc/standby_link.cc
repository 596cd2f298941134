#include "ps/rpc/standby_link.h"

#include <poll.h>

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

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

std::string name_of_server(std::uint32_t rank) {
  return "server " + std::to_string(rank);
}

// A connection to one server, which has accepted the hello of an observer.
class Link {
 public:
  Link(std::uint32_t rank, std::shared_ptr<ServerAddresses> addresses, Access access, Transport transport)
      : rank_(rank), addresses_(std::move(addresses)), access_(std::move(access)), transport_(transport) {}

  std::unique_ptr<Channel> connect(const std::atomic<bool>& give_up) const {
    const Clock::time_point deadline = Clock::now() + kConnect;
    const std::uint64_t moves = addresses_->moves(rank_);
    auto channel =
        std::make_unique<RpcChannel>(rank_, addresses_->at(rank_), make_answers(), RpcChannelOptions{});
    const auto gives_up = [&] { return give_up || addresses_->moves(rank_) != moves; };
    Dial dial = reach(*channel, gives_up, deadline);
    channel->use(dial);
    const auto endings = std::make_shared<Endings>();
    const auto servers = static_cast<std::uint32_t>(addresses_->all().size());
    const auto hello = channel->start_hello(
        make_hello(observer_options(), make_incarnation(), rank_, servers, channel->connection()), endings,
        std::chrono::system_clock::now() + kConnect);
    while (!endings->wait(1, Clock::now() + std::chrono::milliseconds(kLookAroundMs)))
      if (gives_up() || Clock::now() >= deadline) fail(channel->name(), "it does not answer");
    hello->result();
    return channel;
  }

 private:
  [[noreturn]] static void fail(const std::string& name, const std::string& why) {
    throw Error(ErrorKind::network, name + (why.empty() ? ": nobody listens there" : ": " + why));
  }

  // Who refuses a connection is not there, and is not waited for.
  Dial reach(const RpcChannel& channel, const std::function<bool()>& gives_up,
             Clock::time_point deadline) const {
    const std::string& name = channel.name();
    std::string why;
    for (const TransportKind kind : {TransportKind::unix_socket, TransportKind::tcp}) {
      if (!offers(transport_, kind)) continue;
      Dial dial(channel.endpoint(), name, access_, 0, kind);
      for (dial.advance(); !dial.is_connected() && !dial.has_failed(); dial.advance()) {
        if (gives_up() || Clock::now() >= deadline) fail(name, "it does not answer");
        pollfd wanted = dial.wanted();
        ::poll(&wanted, 1, kLookAroundMs);
      }
      if (dial.is_connected()) return dial;
      why = dial.reason();
    }
    fail(name, why);
  }

  std::uint32_t rank_;
  std::shared_ptr<ServerAddresses> addresses_;  // shared with who is told of moves
  Access access_;
  Transport transport_;
};

using Holder = std::function<std::optional<std::uint32_t>()>;

StandbyOptions standby_by(const Holder& holder, const std::shared_ptr<ServerAddresses>& addresses,
                          const Access& access, Transport transport) {
  StandbyOptions out;
  out.name = [holder] {
    const auto now = holder();
    return now ? name_of_server(*now) : "another host";
  };
  out.moves = [holder, addresses] {
    const auto now = holder();
    return now ? addresses->moves(*now) << 32 | *now : ~std::uint64_t{0};
  };
  out.connect = [=](const std::atomic<bool>& give_up) {
    const auto now = holder();
    if (!now) throw Error(ErrorKind::network, "all servers are on this host since the others were lost");
    return Link(*now, addresses, access, transport).connect(give_up);
  };
  return out;
}

}  // namespace

StandbyOptions standby_at(std::uint32_t rank, const std::shared_ptr<ServerAddresses>& addresses,
                          const Access& access, Transport transport) {
  standby_of(rank, addresses->first());  // there is one
  const auto holder = [rank, addresses] { return standby_now(rank, addresses->first(), addresses->all()); };
  return standby_by(holder, addresses, access, transport);
}

StandbyOptions standby_beside_at(std::uint32_t rank, const std::shared_ptr<ServerAddresses>& addresses,
                                 const Access& access, Transport transport) {
  const std::uint32_t holder = standby_beside(rank, addresses->first().size());
  return standby_by([holder] { return holder; }, addresses, access, transport);
}

StandbyOptions standby_options_of(const Environ& environ, std::uint32_t rank,
                                  const std::shared_ptr<ServerAddresses>& addresses) {
  const std::string replicas = environ.value_or("FLEETRUN_PS_REPLICAS", "0");
  if (replicas == "0" || replicas.empty()) return {};
  if (replicas != "1")
    throw Error(ErrorKind::config, "FLEETRUN_PS_REPLICAS=" + printable(replicas) + " is neither 0 nor 1",
                "a server has one standby, or none");
  if (environ.value_or("FLEETRUN_PS_CHECKPOINT", "").empty())
    throw Error(ErrorKind::config, "FLEETRUN_PS_REPLICAS=1 without FLEETRUN_PS_CHECKPOINT",
                "a standby is for servers that are started again: --ps_checkpoint or --max_restart");
  const bool moves = !environ.value_or("FLEETRUN_PS_PROCESSES", "").empty();
  return (moves ? standby_beside_at : standby_at)(rank, addresses, access_of(environ), transport_of(environ));
}

}  // namespace fleetrun::ps
