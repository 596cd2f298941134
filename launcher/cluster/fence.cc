#include "launcher/cluster/fence.h"

namespace fleetrun::launcher {

bool is_quorum(std::size_t here, std::size_t all, bool has_coordinator) noexcept {
  return 2 * here > all || (2 * here == all && (all == 0 || has_coordinator));
}

bool may_prepare(std::uint64_t generation, std::uint64_t promised) noexcept {
  return generation > promised;
}

}  // namespace fleetrun::launcher
