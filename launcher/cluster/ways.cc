#include "launcher/cluster/ways.h"

#include <errno.h>
#include <string.h>

#include <map>
#include <utility>
#include <vector>

#include "launcher/cluster/connector.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

constexpr std::chrono::seconds kPatience{3};

/// By name, and whose they are.
std::map<std::string, std::pair<Endpoint, std::string>> ports_of_others(const World& world,
                                                                        std::size_t node_rank) {
  std::map<std::string, std::pair<Endpoint, std::string>> found;
  const std::string& own = world.members[node_rank].offer.host;
  const auto add = [&](const Member& member, std::uint16_t port) {
    const Endpoint endpoint{member.offer.host, port};
    if (port != 0 && endpoint.host != own)
      found.emplace(to_string(endpoint), std::pair(endpoint, member.name));
  };
  const Member& next = world.members[(node_rank + 1) % world.members.size()];
  for (const Member* member : {&world.members.front(), &next}) {
    for (const auto* ports : {&member->offer.trainers, &member->offer.servers})
      if (!ports->empty()) add(*member, ports->front());
  }
  for (const Member& member : world.members)
    if (world.rendezvous() == Endpoint{member.offer.host, member.offer.rendezvous})
      add(member, member.offer.rendezvous);
  return found;
}

class Trial final : public Ways {
 public:
  Trial(boost::asio::io_context& loop, const World& world, std::size_t node_rank,
        std::function<void(const std::string&)> blocked)
      : blocked_(std::move(blocked)) {
    const std::string listens_not = ::strerror(ECONNREFUSED);
    for (const auto& [text, port] : ports_of_others(world, node_rank)) {
      ++left_;
      dials_.push_back(connect_to(loop, port.first, kPatience,
                                  [this, listens_not, name = text + " on " + port.second](
                                      const UniqueFd& socket, const std::string& why) {
                                    if (!socket && why != listens_not)
                                      closed_.push_back(name + " (" + why + ")");
                                    if (--left_ == 0 && !closed_.empty()) tell();
                                  }));
    }
  }

 private:
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
