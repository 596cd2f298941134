#include "collective/cpu/shared_rounds.h"

#include <algorithm>
#include <string>
#include <vector>

namespace fleetrun::collective {

void SharedRounds::begin(const Call& call, std::uint64_t extent) {
  tag_ = tag_of(call, calls_++);
  extent_ = extent;
  first_phase_ = phase_;
  is_compared_ = false;
  deadline_.reset();
}

std::byte* SharedRounds::stage() {
  claim();
  return group_->segment().slot(group_->rank(), static_cast<std::uint32_t>(phase_ % kSlots));
}

void SharedRounds::claim() {
  if (is_claimed_) return;
  if (phase_ >= kSlots) reach(phase_ - 2);
  is_claimed_ = true;
}

void SharedRounds::publish() {
  claim();
  SharedLine& own = line(group_->rank(), phase_);
  if (phase_ == first_phase_) {
    own.tag = tag_;
    own.extent = extent_;
  }
  own.stamp.store(static_cast<std::uint32_t>(phase_ + 1));
  group_->wake(group_->rank());
  ++phase_;
  is_claimed_ = false;
}

void SharedRounds::await(std::uint64_t phase) {
  reach(phase);
  if (!is_compared_) compare();
}

void SharedRounds::reach(std::uint64_t phase) {
  if (phase < reached_) return;
  for (int r = 0; r < group_->size(); ++r) {
    if (r == group_->rank()) continue;
    if (!group_->wait(r, r, deadline_, [&] { return has_published(r, phase); })) miss(phase);
  }
  reached_ = phase + 1;
}

void SharedRounds::miss(std::uint64_t phase) {
  std::vector<int> missing;
  for (int r = 0; r < group_->size(); ++r) {
    if (r == group_->rank() || has_published(r, phase)) continue;
    if (group_->has_left(r)) {
      group_->fail_and_throw(
          Error(ErrorKind::network, group_->prefix() + "rank " + std::to_string(r) + " has left; rank " +
                                        std::to_string(group_->rank()) + " calls " + to_string(tag_)));
    }
    missing.push_back(r);
  }
  std::string ranks;
  for (const int r : missing) ranks += (ranks.empty() ? "" : ", ") + std::to_string(r);
  group_->fail_and_throw(
      Error(ErrorKind::timeout, group_->prefix() + (missing.size() == 1 ? "rank " : "ranks ") + ranks +
                                    " did not come to " + to_string(tag_) + ", within " +
                                    std::to_string(group_->call_within().count()) + " ms"));
}

void SharedRounds::compare() {
  is_compared_ = true;
  max_extent_ = extent_;
  for (int r = 0; r < group_->size(); ++r) {
    if (r == group_->rank()) continue;
    const SharedLine& theirs = line(r, first_phase_);
    if (theirs.tag != tag_) differ();
    max_extent_ = std::max(max_extent_, theirs.extent);
  }
}

void SharedRounds::differ() {
  std::vector<CallTag> tags;
  for (int r = 0; r < group_->size(); ++r)
    tags.push_back(r == group_->rank() ? tag_ : line(r, first_phase_).tag);
  // What most ranks call; of as many, what the lower rank calls.
  const auto votes = [&](const CallTag& tag) { return std::count(tags.begin(), tags.end(), tag); };
  const auto max = std::max_element(tags.begin(), tags.end(),
                                    [&](const CallTag& a, const CallTag& b) { return votes(a) < votes(b); });
  const auto other = std::find_if(tags.begin(), tags.end(), [&](const CallTag& tag) { return tag != *max; });
  group_->fail_and_throw(Error(ErrorKind::config,
                               group_->prefix() + "rank " + std::to_string(other - tags.begin()) + " calls " +
                                   to_string(*other) + "; rank " + std::to_string(max - tags.begin()) +
                                   " calls " + to_string(*max),
                               "all ranks of a group make the same calls in the same order"));
}

}  // namespace fleetrun::collective
