#include "launcher/cluster/quorum.h"

#include <algorithm>

namespace fleetrun::launcher {

void KnownConfigurations::formed(const Configuration& configuration) {
  if (configuration.generation <= formed_.generation) return;
  formed_ = configuration;
  std::erase_if(proposals_,
                [this](const Configuration& proposal) { return proposal.generation <= formed_.generation; });
}

void KnownConfigurations::promised(const Configuration& configuration) {
  if (configuration.nodes.empty() || configuration.generation <= formed_.generation) return;
  // What one coordinator proposed before, and did not form, it never will.
  const auto same = [&configuration](const Configuration& other) {
    return other.coordinator == configuration.coordinator;
  };
  const auto newer = std::find_if(proposals_.begin(), proposals_.end(), [&](const Configuration& other) {
    return same(other) && other.generation >= configuration.generation;
  });
  if (newer != proposals_.end()) return;
  std::erase_if(proposals_, same);
  proposals_.push_back(configuration);
}

void KnownConfigurations::given_up(const std::string& coordinator) {
  std::erase_if(proposals_,
                [&coordinator](const Configuration& its) { return its.coordinator == coordinator; });
}

bool KnownConfigurations::concerns(const std::string& node) const noexcept {
  const auto has = [&node](const Configuration& its) {
    return std::find(its.nodes.begin(), its.nodes.end(), node) != its.nodes.end();
  };
  return has(formed_) || std::any_of(proposals_.begin(), proposals_.end(), has);
}

Configuration configuration_of(const World& world, const std::string& coordinator) {
  Configuration configuration{world.generation, world.attempt, coordinator, {}};
  configuration.nodes.reserve(world.members.size());
  for (const Member& member : world.members) configuration.nodes.push_back(member.node);
  return configuration;
}

}  // namespace fleetrun::launcher
