#include "launcher/cluster/ranks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

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
  for (const TakenOver& server : before.taken_over)
    if (!is_here(server.node)) return std::nullopt;
  std::vector<std::string> endpoints;
  for (const Endpoint& endpoint : before.server_endpoints()) endpoints.push_back(to_string(endpoint));
  std::map<int, const Member*> serving;  // by rank
  for (const Member& member : before.members)
    for (int i = 0; i < static_cast<int>(member.offer.servers.size()); ++i)
      serving[member.first_server + i] = &member;
  std::vector<TakenOver> all = before.taken_over;
  std::set<int> holders;
  for (const auto& [rank, member] : serving) {
    if (is_here(member->node)) continue;
    if (member->offer.standbys.empty() || !before.taken_over.empty()) return std::nullopt;
    const auto holder = static_cast<int>(standby_of(static_cast<std::uint32_t>(rank), endpoints));
    const Member& there = *serving.at(holder);
    const auto place = static_cast<std::size_t>(holder - there.first_server);
    if (!is_here(there.node) || place >= there.offer.standbys.size() || !holders.insert(holder).second)
      return std::nullopt;
    all.push_back({rank, there.node, {there.offer.host, there.offer.standbys[place]}});
  }
  return all;
}

std::vector<Member> arrange_in_place(const World& before, const std::vector<Candidate>& candidates,
                                     std::size_t max) {
  std::vector<Member> members;
  bool has_lost_servers = !before.taken_over.empty();
  for (const Member& member : before.members) {
    const bool here =
        std::any_of(candidates.begin(), candidates.end(),
                    [&member](const Candidate& candidate) { return candidate.member.node == member.node; });
    if (here) members.push_back(member);
    has_lost_servers = has_lost_servers || (!here && !member.offer.servers.empty());
  }
  for (const Candidate& candidate : candidates) {
    if (members.size() >= max) break;
    if (before.rank_of(candidate.member.node)) continue;
    Member member = candidate.member;
    if (has_lost_servers) member.offer.servers.clear();
    member.first_trainer =
        first_hole(members, &Member::first_trainer, &PodOffer::trainers, member.offer.trainers.size());
    member.first_server =
        first_hole(members, &Member::first_server, &PodOffer::servers, member.offer.servers.size());
    members.push_back(std::move(member));
  }
  return members;
}

}  // namespace fleetrun::launcher
