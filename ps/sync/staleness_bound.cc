#include "ps/sync/staleness_bound.h"

#include <algorithm>
#include <utility>

namespace fleetrun::ps {

std::int64_t StalenessBound::slowest() const noexcept {
  std::int64_t slowest = 0;
  bool is_first = true;
  for (const auto& [participant, clock] : clocks_) {
    if (is_first || clock.time < slowest) slowest = clock.time;
    is_first = false;
  }
  return slowest;
}

std::int64_t StalenessBound::start_of(const Participant& newcomer) const noexcept {
  if (clocks_.empty()) return furthest_;
  const auto left = left_at_.find(newcomer);
  return left == left_at_.end() ? slowest() : std::max(slowest(), left->second + 1);
}

std::vector<Respond> StalenessBound::begin(Step step) {
  const auto number = static_cast<std::int64_t>(step.number);
  const std::int64_t start = start_of(step.from);
  const auto [at, is_new] = clocks_.try_emplace(step.from);
  if (is_new) at->second.offset = start - number;
  at->second.time = number + at->second.offset;
  furthest_ = std::max(furthest_, at->second.time);
  waiting_.push_back(
      {step.from, at->second.time - static_cast<std::int64_t>(step.bound), std::move(step.respond)});
  return release();
}

std::vector<Respond> StalenessBound::leave(const Participant& participant) {
  const auto at = clocks_.find(participant);
  if (at != clocks_.end()) {
    left_at_[participant] = at->second.time;
    clocks_.erase(at);
  }
  if (clocks_.empty()) left_at_.clear();  // all start even
  return release();
}

std::vector<Respond> StalenessBound::leave_all(std::uint32_t trainer) {
  const auto is_its = [trainer](const auto& entry) { return entry.first.trainer == trainer; };
  std::erase_if(clocks_, is_its);
  std::erase_if(left_at_, is_its);
  return release();
}

std::vector<Respond> StalenessBound::give_up() {
  std::vector<Respond> out;
  for (Waiting& waiting : waiting_) out.push_back(std::move(waiting.respond));
  waiting_.clear();
  return out;
}

// Those that need not wait any more; one that has left is among them.
std::vector<Respond> StalenessBound::release() {
  const std::int64_t now = slowest();
  std::vector<Respond> out;
  for (Waiting& waiting : waiting_) {
    if (clocks_.contains(waiting.from) && waiting.until > now) continue;
    out.push_back(std::move(waiting.respond));
    waiting.respond = nullptr;
  }
  std::erase_if(waiting_, [](const Waiting& waiting) { return !waiting.respond; });
  return out;
}

}  // namespace fleetrun::ps
