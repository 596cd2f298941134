#include "ps/rpc/server_addresses.h"

#include <utility>

namespace fleetrun::ps {

std::string ServerAddresses::at(std::uint32_t rank) const {
  const std::lock_guard lock(mutex_);
  return endpoints_.at(rank);
}

std::vector<std::string> ServerAddresses::all() const {
  const std::lock_guard lock(mutex_);
  return endpoints_;
}

std::uint64_t ServerAddresses::moves(std::uint32_t rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = moves_of_.find(rank);
  return found == moves_of_.end() ? 0 : found->second;
}

void ServerAddresses::move(const std::map<std::uint32_t, std::string>& endpoints) {
  std::vector<std::function<void()>> to_call;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [rank, endpoint] : endpoints) {
      if (rank >= endpoints_.size() || endpoints_[rank] == endpoint) continue;
      endpoints_[rank] = endpoint;
      ++moves_of_[rank];
      ++moves_;
      if (const auto found = watching_.find(rank); found != watching_.end())
        to_call.push_back(watching_.extract(found).mapped());
    }
  }
  for (const auto& moved : to_call) moved();
}

void ServerAddresses::watch(std::uint32_t rank, const std::string& endpoint, std::function<void()> moved) {
  {
    const std::lock_guard lock(mutex_);
    if (endpoints_.at(rank) == endpoint) {
      watching_[rank] = std::move(moved);
      return;
    }
    watching_.erase(rank);
  }
  moved();
}

}  // namespace fleetrun::ps
