// Which nodes are enough to form the next world, so that two groups of nodes never both are. Pure.
//
// See launcher/cluster/fence.h for what enough is, and launcher/cluster/coordinator_core.h for what follows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/cluster/fence.h"
#include "launcher/cluster/messages.h"

namespace fleetrun::launcher {

/// What is known of worlds and proposals: the newest world, and the proposals after it that may have become
/// one. Members and coordinators keep one each.
class KnownConfigurations {
 public:
  void formed(const Configuration& configuration);
  void promised(const Configuration& configuration);
  /// What `coordinator` proposed, and has not formed, it never will.
  void given_up(const std::string& coordinator);
  /// Generation 0: none was formed.
  const Configuration& newest() const noexcept { return formed_; }
  /// Whether `node` counts in any of them.
  bool concerns(const std::string& node) const noexcept;
  const std::vector<Configuration>& proposals() const noexcept { return proposals_; }
  /// Whether `holds` (is this node among those that are here?) is true for enough nodes of each.
  template <class Holds>
  bool quorum(Holds holds) const {
    if (!enough(formed_, holds)) return false;
    for (const Configuration& proposal : proposals_) {
      // A coordinator that has joined others will not form what it proposed before.
      if (!holds(proposal.coordinator) && !enough(proposal, holds)) return false;
    }
    return true;
  }

 private:
  template <class Holds>
  static bool enough(const Configuration& configuration, Holds holds) {
    std::size_t here = 0;
    for (const std::string& node : configuration.nodes) here += holds(node) ? 1 : 0;
    return is_quorum(here, configuration.nodes.size(), holds(configuration.coordinator));
  }

  Configuration formed_;
  std::vector<Configuration> proposals_;  // all newer than formed_
};

/// Of the members of `world`, which `coordinator` formed.
Configuration configuration_of(const World& world, const std::string& coordinator);

}  // namespace fleetrun::launcher
