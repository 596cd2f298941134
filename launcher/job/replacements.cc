#include "launcher/job/replacements.h"

#include <algorithm>
#include <utility>

namespace fleetrun::launcher {

Replacements::Replacements(std::vector<std::size_t> trainers, std::vector<std::size_t> standby)
    : trainers_(std::move(trainers)), standby_(std::move(standby)) {
  std::size_t count = 0;
  for (const auto* list : {&trainers_, &standby_})
    for (const std::size_t index : *list) count = std::max(count, index + 1);
  members_.resize(count);
  begin_attempt();
}

void Replacements::begin_attempt() {
  members_.assign(members_.size(), {});
  for (const std::size_t index : standby_) members_[index].standby = true;
  seats_ = trainers_;
  vacated_.assign(seats_.size(), kNobody);
  finished_ = false;
  generation_ = failed_starts_ = same_steps_ = 0;
  last_step_ = -1;
}

bool Replacements::is_pending() const noexcept {
  return std::any_of(seats_.begin(), seats_.end(), [this](std::size_t index) {
    return index == kNobody || members_[index].left >= generation_;
  });
}

void Replacements::started(std::size_t index) {
  const bool standby = members_[index].standby;
  members_[index] = {.standby = standby, .alive = true};
}

void Replacements::heard(const MemberSaid& said) {
  Member& member = members_[said.index];
  switch (said.what) {
    case MemberSaid::What::waits:
      member.waits = member.standby;
      if (member.standby) failed_starts_ = 0;
      return;
    case MemberSaid::What::trains:
      member.trains = !member.standby;
      return;
    case MemberSaid::What::leaves:
      member.left = std::max(member.left, said.generation);
      member.step = said.step;
      return;
  }
}

bool Replacements::may_go_on() const {
  if (finished_ || same_steps_ >= kSameSteps) return false;
  return std::any_of(seats_.begin(), seats_.end(),
                     [this](std::size_t index) { return index != kNobody && members_[index].trains; });
}

bool Replacements::lose(std::size_t index) {
  if (members_[index].standby) {
    const bool was_ready = members_[index].waits;
    members_[index] = {.standby = true};
    return was_ready || ++failed_starts_ < kFailedStarts;
  }
  const auto rank = std::find(seats_.begin(), seats_.end(), index) - seats_.begin();
  const auto seat = static_cast<std::size_t>(rank);
  seats_[seat] = kNobody;
  vacated_[seat] = index;
  members_[index] = {};
  if (!may_go_on()) return false;
  members_[index].standby = true;
  return true;
}

bool Replacements::finish(std::size_t index) {
  if (members_[index].standby) return true;
  finished_ = true;
  members_[index].alive = false;
  return !is_pending();
}

std::string Replacements::why_not() const {
  if (finished_) return "another trainer has ended its work";
  if (same_steps_ >= kSameSteps)
    return "a trainer was lost in step " + std::to_string(last_step_) + " each time";
  return "no other trainer has the state of the training (fleetrun.torch.recoverable)";
}

std::optional<std::size_t> Replacements::lost() const noexcept {
  for (std::size_t rank = 0; rank < seats_.size(); ++rank)
    if (seats_[rank] == kNobody) return vacated_[rank];
  return std::nullopt;
}

std::optional<event::GenerationBegan> Replacements::next() {
  if (finished_ || !is_pending()) return std::nullopt;
  event::GenerationBegan began;
  began.generation = generation_ + 1;
  std::vector<std::size_t> ready;
  for (std::size_t index = 0; index < members_.size(); ++index)
    if (members_[index].waits) ready.push_back(index);
  std::int64_t step = last_step_;
  for (const std::size_t index : seats_) {
    if (index == kNobody) continue;
    if (members_[index].left < generation_) return std::nullopt;  // it has not heard yet
    if (members_[index].trains) step = std::max(step, members_[index].step);
  }
  const auto vacant = static_cast<std::size_t>(std::count(seats_.begin(), seats_.end(), kNobody));
  if (vacant > ready.size()) return std::nullopt;
  auto standby = ready.begin();
  for (std::size_t rank = 0; rank < seats_.size(); ++rank) {
    if (seats_[rank] == kNobody) {
      seats_[rank] = *standby++;
      members_[seats_[rank]] = {.alive = true};
      began.replaced.push_back({static_cast<int>(rank), vacated_[rank], seats_[rank]});
    }
    if (!members_[seats_[rank]].trains) began.newcomers.push_back(static_cast<int>(rank));
  }
  same_steps_ = step == last_step_ ? same_steps_ + 1 : 0;
  last_step_ = step;
  began.step = step;
  began.seats = seats_;
  ++generation_;
  return began;
}

}  // namespace fleetrun::launcher
