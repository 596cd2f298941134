#include "collective/base/communicator_ring.h"

namespace fleetrun::collective {

CommunicatorRing::CommunicatorRing(std::vector<std::unique_ptr<Communicator>> members)
    : members_(std::move(members)) {
  if (members_.empty())
    throw Error(ErrorKind::config, "a ring of 0 communicators", "set nccl_comm_num to 1 or more");
  const Place& first = members_.front()->place();
  for (const auto& member : members_) {
    const Place& place = member->place();
    if (place.rank == first.rank && place.size == first.size) continue;
    throw Error(ErrorKind::config, "a ring of communicators: this process is rank " +
                                       std::to_string(first.rank) + " of " + std::to_string(first.size) +
                                       " in one and rank " + std::to_string(place.rank) + " of " +
                                       std::to_string(place.size) + " in another");
  }
}

void CommunicatorRing::abort(const Error& why) noexcept {
  for (const auto& member : members_) member->abort(why);
}

}  // namespace fleetrun::collective
