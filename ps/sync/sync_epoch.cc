#include "ps/sync/sync_epoch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

std::string name_of(const Participant& participant) {
  return "trainer " + std::to_string(participant.trainer) + ", thread " + std::to_string(participant.thread);
}

}  // namespace

void SyncEpoch::begin(const std::map<std::uint32_t, std::uint32_t>& threads) {
  participants_.clear();
  steps_.clear();
  for (const auto& [trainer, count] : threads) join(trainer, count);
}

void SyncEpoch::join(const Participant& participant) {
  participants_.try_emplace(participant);
  steps_.try_emplace(participant);
}

void SyncEpoch::join(std::uint32_t trainer, std::uint32_t threads) {
  for (std::uint32_t thread = 0; thread < threads; ++thread) join(Participant{trainer, thread});
}

std::vector<Respond> SyncEpoch::leave_all(std::uint32_t trainer) {
  std::vector<Respond> waiting;
  for (auto& [participant, state] : participants_) {
    if (participant.trainer == trainer) state.take_waits(waiting);
  }
  std::erase_if(participants_, [trainer](const auto& entry) { return entry.first.trainer == trainer; });
  return waiting;
}

std::vector<Respond> SyncEpoch::take_over(std::uint32_t trainer) {
  std::vector<Respond> waiting;
  for (const auto& [participant, steps] : steps_) {
    if (participant.trainer != trainer) continue;
    participants_[participant].take_waits(waiting);
  }
  return waiting;
}

SyncEpoch::State& SyncEpoch::state_of(const Participant& participant) {
  const auto found = participants_.find(participant);
  if (found != participants_.end()) return found->second;
  throw Error(ErrorKind::config, name_of(participant) + " pushes, but has not joined the epoch",
              "call begin_epoch (in Python begin_pass) with the number of threads first, and push no more "
              "after leave_epoch (leave_pass)");
}

void SyncEpoch::State::take_waits(std::vector<Respond>& to) {
  for (auto* wait : {&waiting, &measuring}) {
    if (*wait) to.push_back(std::move((*wait)->respond));
    wait->reset();
  }
}

std::vector<Respond> SyncEpoch::measure(Contribution contribution) {
  State& state = state_of(contribution.from);
  std::vector<Respond> earlier;
  if (state.measuring) earlier.push_back(std::move(state.measuring->respond));
  state.measuring = std::make_unique<Contribution>(std::move(contribution));
  return earlier;
}

std::optional<std::chrono::steady_clock::time_point> SyncEpoch::waits_since(std::uint32_t trainer) const {
  std::optional<std::chrono::steady_clock::time_point> last;
  for (const auto& [participant, state] : participants_) {
    if (participant.trainer != trainer) continue;
    const Contribution* sent = state.waiting ? state.waiting.get() : state.measuring.get();
    if (sent == nullptr || state.applying) return std::nullopt;
    last = std::max(last.value_or(sent->since), sent->since);
  }
  return last;
}

std::vector<const wire::PushRequest*> SyncEpoch::measured() const {
  std::vector<const wire::PushRequest*> step;
  bool is_any_measuring = false;
  for (const auto& [participant, state] : participants_) {
    is_any_measuring = is_any_measuring || state.measuring;
    const Contribution* sent = state.waiting ? state.waiting.get() : state.measuring.get();
    if (sent == nullptr || state.applying) return {};
    step.push_back(sent->push.get());
  }
  return is_any_measuring ? step : std::vector<const wire::PushRequest*>();
}

std::vector<Respond> SyncEpoch::take_measuring() {
  std::vector<Respond> out;
  for (auto& [participant, state] : participants_) {
    if (state.measuring) out.push_back(std::move(state.measuring->respond));
    state.measuring.reset();
  }
  return out;
}

void SyncEpoch::push(Contribution contribution) {
  State& state = state_of(contribution.from);
  // Who asked again for its last push may hear that it was applied before finish() was called.
  const bool may_be_early = contribution.change.number != 0;
  if ((state.applying && !may_be_early) || state.waiting) {
    throw Error(ErrorKind::config, name_of(contribution.from) + " pushes twice in one step",
                "wait for a push before the next one in sync mode");
  }
  state.waiting = std::make_unique<Contribution>(std::move(contribution));
}

std::vector<Contribution> SyncEpoch::take_complete() {
  for (const auto& [participant, state] : participants_) {
    if (!state.waiting || state.applying) return {};
  }
  std::vector<Contribution> step;
  for (auto& [participant, state] : participants_) {
    step.push_back(std::move(*state.waiting));
    state.waiting.reset();
    state.applying = true;
    ++steps_[participant].taken;
  }
  return step;
}

void SyncEpoch::finish(const std::vector<Contribution>& step) {
  for (const Contribution& contribution : step) {
    const auto found = participants_.find(contribution.from);
    if (found != participants_.end()) found->second.applying = false;
  }
}

std::vector<std::uint64_t> SyncEpoch::steps(std::uint32_t trainer) const {
  std::vector<std::uint64_t> out;
  for (const auto& [participant, steps] : steps_) {
    if (participant.trainer == trainer) out.push_back(steps.taken);
  }
  return out;
}

bool SyncEpoch::is_applying(std::uint32_t trainer) const {
  return std::ranges::any_of(participants_, [trainer](const auto& entry) {
    return entry.first.trainer == trainer && entry.second.applying;
  });
}

void SyncEpoch::count(const std::vector<Participant>& step) {
  for (const Participant& participant : step) {
    const auto found = steps_.find(participant);
    if (found == steps_.end()) continue;
    ++found->second.applied;
    found->second.taken = std::max(found->second.taken, found->second.applied);
  }
}

void SyncEpoch::write(Bytes& out) const {
  out.value(static_cast<std::uint32_t>(steps_.size()));
  for (const auto& [participant, steps] : steps_) {
    out.value(participant.trainer);
    out.value(participant.thread);
    out.value(std::uint64_t{participants_.contains(participant)});
    out.value(steps.applied);
  }
}

void SyncEpoch::read(Reader& in) {
  participants_.clear();
  steps_.clear();
  const auto threads = in.value<std::uint32_t>();
  for (std::uint32_t i = 0; i < threads; ++i) {
    const auto trainer = in.value<std::uint32_t>();
    const Participant participant{trainer, in.value<std::uint32_t>()};
    if (in.value<std::uint64_t>() != 0) participants_.try_emplace(participant);
    const auto applied = in.value<std::uint64_t>();
    steps_[participant] = {applied, applied};
  }
}

std::vector<Respond> SyncEpoch::drop_waits() {
  std::vector<Respond> waiting;
  for (auto& [participant, state] : participants_) {
    state.take_waits(waiting);
  }
  return waiting;
}

}  // namespace fleetrun::ps
