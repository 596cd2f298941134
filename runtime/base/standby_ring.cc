#include "runtime/base/standby_ring.h"

#include <algorithm>
#include <map>

#include "runtime/base/error.h"

namespace fleetrun {
namespace {

std::string host_of(const std::string& endpoint) {
  return endpoint.substr(0, endpoint.rfind(':'));
}

void check_another(std::size_t servers) {
  if (servers < 2)
    throw Error(ErrorKind::config, "a server's standby is another server, and there is one",
                "start two or more: --server_num=2");
}

}  // namespace

// Whatever N is, numbers that differ by one are of two processes. In pairs; the last of an odd number is a
// third.
std::uint32_t standby_beside(std::uint32_t rank, std::size_t servers) {
  check_another(servers);
  return rank % 2 == 1 || rank + 1 == servers ? rank - 1 : rank + 1;
}

std::uint32_t standby_of(std::uint32_t rank, const std::vector<std::string>& endpoints) {
  check_another(endpoints.size());
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

std::optional<std::uint32_t> standby_now(std::uint32_t rank, const std::vector<std::string>& first,
                                         const std::vector<std::string>& now) {
  if (first.size() < 2) return std::nullopt;
  const auto is_alone = [&](const std::string& other) { return host_of(other) == host_of(first.front()); };
  std::uint32_t holder = standby_of(rank, first);
  if (std::ranges::all_of(first, is_alone)) return holder;
  for (std::size_t tried = 0; tried < first.size(); ++tried, holder = standby_of(holder, first))
    if (host_of(now.at(holder)) != host_of(now.at(rank))) return holder;
  return std::nullopt;
}

}  // namespace fleetrun
