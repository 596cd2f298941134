#include "ps/sync/staleness.h"

#include <utility>

namespace fleetrun::ps {

std::uint64_t Staleness::Pushes::of_others(std::uint32_t trainer) const {
  const auto own = by_trainer.find(trainer);
  return all - (own == by_trainer.end() ? 0 : own->second);
}

void Staleness::pulled(const Participant& from, Kind kind) {
  const std::lock_guard lock(mutex_);
  std::deque<std::uint64_t>& pulls = pulls_[kind][from];
  pulls.push_back(pushes_[kind].of_others(from.trainer));
  if (pulls.size() > kMax) pulls.pop_front();
}

void Staleness::pushed(const Participant& from, Kind kind) {
  const std::lock_guard lock(mutex_);
  Pushes& pushes = pushes_[kind];
  std::deque<std::uint64_t>& pulls = pulls_[kind][from];
  if (!pulls.empty()) {
    const std::uint64_t staleness = pushes.of_others(from.trainer) - pulls.front();
    pulls.pop_front();
    counts_.add({1, staleness, staleness});
    of_trainers_[from.trainer].add({1, staleness, staleness});
  }
  ++pushes.all;
  ++pushes.by_trainer[from.trainer];
}

StalenessCounts Staleness::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

StalenessCounts Staleness::take(std::uint32_t trainer) {
  const std::lock_guard lock(mutex_);
  // A pull that was never followed by its push belongs to the epoch before.
  for (auto& [kind, pulls] : pulls_) {
    std::erase_if(pulls, [trainer](const auto& entry) { return entry.first.trainer == trainer; });
  }
  return std::exchange(of_trainers_[trainer], {});
}

}  // namespace fleetrun::ps
