#include "collective/base/grouping.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::collective {
namespace {

/// The first two ranks of `ranks` that are on different hosts, if there are such.
std::optional<std::pair<int, int>> apart(const std::vector<std::string>& hosts,
                                         const std::vector<int>& ranks) {
  for (const int rank : ranks)
    if (hosts[static_cast<std::size_t>(rank)] != hosts[static_cast<std::size_t>(ranks[0])])
      return std::pair(ranks[0], rank);
  return std::nullopt;
}

RankGroup group_of(const std::vector<std::string>& hosts, std::vector<int> ranks, Transport transport) {
  const auto two = apart(hosts, ranks);
  if (transport == Transport::shared_memory && two)
    throw Error(ErrorKind::config,
                "rank " + std::to_string(two->first) + " and rank " + std::to_string(two->second) +
                    " are on different hosts and cannot share memory",
                "leave the way to fleetrun (FLEETRUN_COLLECTIVE=auto)");
  if (transport == Transport::automatic) transport = two ? Transport::gloo : Transport::shared_memory;
  return {transport, std::move(ranks)};
}

std::vector<std::vector<int>> by_host(const std::vector<std::string>& hosts) {
  std::vector<std::vector<int>> groups;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const std::vector<int>& group) {
      return hosts[static_cast<std::size_t>(group[0])] == hosts[rank];
    });
    if (found != groups.end())
      found->push_back(static_cast<int>(rank));
    else
      groups.push_back({static_cast<int>(rank)});
  }
  return groups;
}

std::vector<std::vector<int>> by_size(int ranks, int inner) {
  if (inner < 2 || ranks % inner != 0)
    throw Error(ErrorKind::config,
                "inner groups of " + std::to_string(inner) + " do not make up " + std::to_string(ranks) +
                    " trainers: inner times outer has to be the number of trainers, and inner at least 2",
                "choose an inner size that divides " + std::to_string(ranks));
  std::vector<std::vector<int>> groups;
  for (int first = 0; first < ranks; first += inner) {
    groups.emplace_back(static_cast<std::size_t>(inner));
    std::iota(groups.back().begin(), groups.back().end(), first);
  }
  return groups;
}

}  // namespace

std::string_view to_string(Transport transport) noexcept {
  switch (transport) {
    case Transport::shared_memory:
      return "shm";
    case Transport::gloo:
      return "gloo";
    default:
      return "auto";
  }
}

Transport parse_transport(const std::string& text) {
  for (const Transport transport : {Transport::automatic, Transport::shared_memory, Transport::gloo})
    if (text == to_string(transport)) return transport;
  throw Error(ErrorKind::config, "'" + printable(text) + "' is not a transport between ranks",
              "set it to auto, shm or gloo");
}

Grouping group_ranks(const std::vector<std::string>& hosts, const GroupingSpec& spec) {
  const int size = static_cast<int>(hosts.size());
  std::vector<int> all(hosts.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::vector<int>> groups;
  const bool is_wanted =
      spec.hierarchical.value_or(spec.transport == Transport::automatic || spec.inner_size > 0);
  if (is_wanted && spec.inner_size < size)
    groups = spec.inner_size != 0 ? by_size(size, spec.inner_size) : by_host(hosts);
  if (groups.size() < 2 || groups.size() == hosts.size())
    return {{group_of(hosts, std::move(all), size == 1 ? Transport::automatic : spec.transport)},
            Transport::gloo};
  Grouping grouping;
  std::vector<int> leaders;
  for (std::vector<int>& group : groups) {
    leaders.push_back(group[0]);
    grouping.groups.push_back(group_of(hosts, std::move(group), spec.transport));
  }
  grouping.outer = group_of(hosts, std::move(leaders), spec.transport).transport;
  return grouping;
}

}  // namespace fleetrun::collective
