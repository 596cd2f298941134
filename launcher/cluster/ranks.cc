#include "launcher/cluster/ranks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "runtime/base/standby_ring.h"

namespace fleetrun::launcher {
namespace {

/// Who is in, best first.
std::vector<const Candidate*> chosen(const std::vector<Candidate>& candidates, std::size_t size) {
  std::vector<const Candidate*> order;
  order.reserve(candidates.size());
  for (const Candidate& candidate : candidates) order.push_back(&candidate);
  const auto precedence = [size](const Candidate* candidate) {
    if (candidate->previous_rank >= 0) return 0;
    return candidate->requested_rank >= 0 && candidate->requested_rank < static_cast<int>(size) ? 1 : 2;
  };
  std::stable_sort(order.begin(), order.end(), [&](const Candidate* left, const Candidate* right) {
    const int first = precedence(left), second = precedence(right);
    return first != second ? first < second : first == 0 && left->previous_rank < right->previous_rank;
  });
  order.resize(size);
  return order;
}

/// The first rank at which `width` ranks in a row are free, where `taken` are [first, end) ranges.
int first_hole(std::vector<std::pair<int, int>> taken, int width) {
  std::sort(taken.begin(), taken.end());
  int free = 0;
  for (const auto& [first, end] : taken) {
    if (first - free >= width) return free;
    free = std::max(free, end);
  }
  return free;
}

int first_hole(const std::vector<Member>& members, int Member::*first,
               std::vector<std::uint16_t> PodOffer::*ports, std::size_t width) {
  std::vector<std::pair<int, int>> taken;
  for (const Member& member : members) {
    const int count = static_cast<int>((member.offer.*ports).size());
    if (count > 0) taken.emplace_back(member.*first, member.*first + count);
  }
  return first_hole(std::move(taken), static_cast<int>(width));
}

std::vector<std::string> texts_of(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> out;
  for (const Endpoint& endpoint : endpoints) out.push_back(to_string(endpoint));
  return out;
}

/// The process that serves a server: that of its member's server of this local rank.
struct ServerProcess {
  const Member* member = nullptr;
  std::size_t local_rank = 0;
};

std::map<int, ServerProcess> server_processes(const World& world) {
  std::map<int, ServerProcess> out;
  for (const Member& member : world.members)
    for (std::size_t i = 0; i < member.offer.servers.size(); ++i)
      out[member.first_server + static_cast<int>(i)] = {&member, i};
  for (const TakenOver& server : world.taken_over) {
    const auto rank = world.rank_of(server.node);
    if (!rank || world.members[*rank].offer.servers.empty()) continue;
    const Member& there = world.members[*rank];
    const auto port = std::ranges::find(there.offer.standbys, server.endpoint.port);
    const auto place = static_cast<std::size_t>(port - there.offer.standbys.begin());
    out[server.rank] = {&there, place % there.offer.servers.size()};
  }
  return out;
}

/// Where the process can serve one more; nullopt: nowhere.
std::optional<Endpoint> free_standby(const ServerProcess& process, const std::vector<TakenOver>& taken) {
  const PodOffer& offer = process.member->offer;
  for (std::size_t i = process.local_rank; i < offer.standbys.size(); i += offer.servers.size()) {
    const Endpoint place{offer.host, offer.standbys[i]};
    if (std::ranges::find(taken, place, &TakenOver::endpoint) == taken.end()) return place;
  }
  return std::nullopt;
}

}  // namespace

std::size_t world_size(const NodeCount& nodes, std::size_t available) noexcept {
  std::size_t size = std::min(available, static_cast<std::size_t>(nodes.max));
  size -= size % static_cast<std::size_t>(std::max(1, nodes.multiple));
  return size < static_cast<std::size_t>(nodes.min) ? 0 : size;
}

std::vector<Member> arrange(const std::vector<Candidate>& candidates, std::size_t size) {
  const std::vector<const Candidate*> in = chosen(candidates, size);
  std::vector<const Candidate*> seats(size);
  std::vector<const Candidate*> newcomers, movers;
  const auto seat = [&seats](int rank, const Candidate* candidate) {
    if (rank < 0 || rank >= static_cast<int>(seats.size()) || seats[static_cast<std::size_t>(rank)])
      return false;
    seats[static_cast<std::size_t>(rank)] = candidate;
    return true;
  };
  for (const Candidate* candidate : in) {
    const bool old = candidate->previous_rank >= 0;
    if (seat(old ? candidate->previous_rank : candidate->requested_rank, candidate)) continue;
    (old ? movers : newcomers).push_back(candidate);
  }
  newcomers.insert(newcomers.end(), movers.begin(), movers.end());
  auto next = newcomers.begin();
  std::vector<Member> members;
  members.reserve(size);
  int trainers = 0, servers = 0;
  for (const Candidate* candidate : seats) {
    Member& member = members.emplace_back((candidate ? candidate : *next++)->member);
    member.first_trainer = trainers;
    member.first_server = servers;
    trainers += static_cast<int>(member.offer.trainers.size());
    servers += static_cast<int>(member.offer.servers.size());
  }
  return members;
}

std::optional<std::vector<TakenOver>> take_over_servers(const World& before,
                                                        const std::vector<Candidate>& candidates) {
  const auto is_here = [&](const std::string& node) {
    return std::ranges::any_of(candidates, [&](const Candidate& its) { return its.member.node == node; });
  };
  const std::vector<Endpoint> first = before.first_server_endpoints();
  const std::vector<std::string> began = texts_of(first), now = texts_of(before.server_endpoints());
  const std::map<int, ServerProcess> serving = server_processes(before);
  std::vector<TakenOver> all;
  for (const TakenOver& server : before.taken_over)
    if (is_here(server.node)) all.push_back(server);
  for (const auto& [rank, process] : serving) {
    if (is_here(process.member->node)) continue;
    if (process.member->offer.standbys.empty()) return std::nullopt;
    const auto holder = standby_now(static_cast<std::uint32_t>(rank), began, now);
    const auto there = holder ? serving.find(static_cast<int>(*holder)) : serving.end();
    if (there == serving.end() || !is_here(there->second.member->node)) return std::nullopt;
    const std::optional<Endpoint> place = free_standby(there->second, all);
    if (!place) return std::nullopt;
    all.push_back({rank, there->second.member->node, *place, first[static_cast<std::size_t>(rank)]});
  }
  return all;
}

std::vector<Member> arrange_in_place(const World& before, const std::vector<Candidate>& candidates,
                                     std::size_t max) {
  std::vector<Member> members;
  for (const Member& member : before.members) {
    const bool here =
        std::any_of(candidates.begin(), candidates.end(),
                    [&member](const Candidate& candidate) { return candidate.member.node == member.node; });
    if (here) members.push_back(member);
  }
  for (const Candidate& candidate : candidates) {
    if (members.size() >= max) break;
    if (before.rank_of(candidate.member.node)) continue;
    Member member = candidate.member;
    member.offer.servers.clear();
    member.first_trainer =
        first_hole(members, &Member::first_trainer, &PodOffer::trainers, member.offer.trainers.size());
    member.first_server =
        first_hole(members, &Member::first_server, &PodOffer::servers, member.offer.servers.size());
    members.push_back(std::move(member));
  }
  return members;
}

}  // namespace fleetrun::launcher
