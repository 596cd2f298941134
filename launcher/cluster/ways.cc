#include "launcher/cluster/ways.h"

#include <errno.h>

#include <map>
#include <utility>
#include <vector>

#include "launcher/cluster/connector.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::chrono::seconds kPatience{3};

struct Port {
  Endpoint endpoint;
  std::string host;      // whose it is
  bool is_open = false;  // its launcher listens there; elsewhere processes will
};

/// By name.
std::map<std::string, Port> ports_of_others(const World& world, std::size_t node_rank) {
  std::map<std::string, Port> found;
  const std::string& own = world.members[node_rank].offer.host;
  const auto add = [&](const Member& member, const Endpoint& endpoint, bool is_open) {
    if (endpoint.port != 0 && member.offer.host != own)
      found.emplace(to_string(endpoint), Port{endpoint, member.name, is_open});
  };
  const Member& next = world.members[(node_rank + 1) % world.members.size()];
  for (const Member* member : {&world.members.front(), &next}) {
    for (const auto* ports : {&member->offer.trainers, &member->offer.servers})
      if (!ports->empty()) add(*member, {member->offer.host, ports->front()}, false);
    add(*member, member->successor, true);
  }
  for (const Member& member : world.members)
    if (const Endpoint place{member.offer.host, member.offer.rendezvous}; world.rendezvous() == place)
      add(member, place, false);
  return found;
}

class Trial final : public Ways {
 public:
  Trial(boost::asio::io_context& loop, const World& world, std::size_t node_rank,
        std::function<void(const std::string&)> blocked)
      : blocked_(std::move(blocked)) {
    for (const auto& [name, port] : ports_of_others(world, node_rank)) {
      ++left_;
      dials_.push_back(connect_to(loop, port.endpoint, kPatience,
                                  [this, port](const UniqueFd& socket, const ConnectFailure& failure) {
                                    if (!socket) on_failure(port, failure);
                                    if (--left_ == 0 && !closed_.empty()) tell();
                                  }));
    }
  }

 private:
  /// A firewall may refuse as a port does where nobody listens.
  void on_failure(const Port& port, const ConnectFailure& failure) {
    const bool is_refused = failure.error == ECONNREFUSED;
    if (is_refused && !port.is_open) return;
    closed_.push_back(to_string(port.endpoint) + " on " + port.host + " (" + failure.why +
                      (is_refused ? ", though its fleetrun listens there" : "") + ")");
  }

  void tell() {
    blocked_(
        "processes of this host do not reach " + join(closed_, ", ") +
        ": a firewall? They need the ports of all hosts; --port_range=FIRST:LAST keeps these to some, and "
        "`fleetrun doctor` tries the ways");
  }

  std::function<void(const std::string&)> blocked_;
  std::vector<std::unique_ptr<Connector>> dials_;
  std::vector<std::string> closed_;
  std::size_t left_ = 0;
};

}  // namespace

std::unique_ptr<Ways> try_ways(boost::asio::io_context& loop, const World& world, std::size_t node_rank,
                               std::function<void(const std::string&)> blocked) {
  if (node_rank >= world.members.size()) return nullptr;
  return std::make_unique<Trial>(loop, world, node_rank, std::move(blocked));
}

}  // namespace fleetrun::launcher
