#include "ps/client/recent_groups.h"

#include <utility>

namespace fleetrun::ps {
namespace {

bool are_groups_of(const KeyGroups& groups, std::span<const std::uint64_t> keys) {
  if (groups.group.size() != keys.size()) return false;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (groups.keys[groups.group[i]] != keys[i]) return false;
  }
  return true;
}

}  // namespace

void RecentGroups::add(std::uint32_t table, std::shared_ptr<const KeyGroups> groups) {
  const std::lock_guard lock(mutex_);
  keys_ += groups->group.size();
  entries_.push_back({table, std::move(groups)});
  while (entries_.size() > kMax || keys_ > kMaxKeys) {
    keys_ -= entries_.front().groups->group.size();
    entries_.pop_front();
  }
}

// The oldest that fits: the pull of the step that ends now, not of the one that follows.
std::shared_ptr<const KeyGroups> RecentGroups::take(std::uint32_t table,
                                                    std::span<const std::uint64_t> keys) {
  const std::lock_guard lock(mutex_);
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    if (at->table != table || !are_groups_of(*at->groups, keys)) continue;
    std::shared_ptr<const KeyGroups> found = std::move(at->groups);
    keys_ -= found->group.size();
    entries_.erase(at);
    return found;
  }
  return nullptr;
}

}  // namespace fleetrun::ps
