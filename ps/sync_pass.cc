#include "ps/sync_pass.h"

#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

std::string name_of(const Participant& participant) {
  return "trainer " + std::to_string(participant.trainer) + ", thread " + std::to_string(participant.thread);
}

}  // namespace

void SyncPass::begin(const std::map<std::uint32_t, std::uint32_t>& threads) {
  participants_.clear();
  for (const auto& [trainer, count] : threads) join(trainer, count);
}

void SyncPass::join(std::uint32_t trainer, std::uint32_t threads) {
  for (std::uint32_t thread = 0; thread < threads; ++thread) participants_.try_emplace({trainer, thread});
}

std::vector<Respond> SyncPass::leave_all(std::uint32_t trainer) {
  std::vector<Respond> waiting;
  for (auto& [participant, state] : participants_) {
    if (participant.trainer == trainer && state.waiting) waiting.push_back(std::move(state.waiting->respond));
  }
  std::erase_if(participants_, [trainer](const auto& entry) { return entry.first.trainer == trainer; });
  return waiting;
}

void SyncPass::push(Contribution contribution) {
  const auto found = participants_.find(contribution.from);
  if (found == participants_.end()) {
    throw Error(ErrorKind::config, name_of(contribution.from) + " pushes, but takes no part in the pass",
                "call begin_pass with the number of threads first, and push no more after leave_pass");
  }
  State& state = found->second;
  // Who asked again for its last push may hear that it was applied before finish() was called.
  const bool may_be_early = contribution.change.number != 0;
  if ((state.applying && !may_be_early) || state.waiting) {
    throw Error(ErrorKind::config, name_of(contribution.from) + " pushes twice in one step",
                "wait for a push before the next one in sync mode");
  }
  state.waiting = std::make_unique<Contribution>(std::move(contribution));
}

std::vector<Contribution> SyncPass::take_complete() {
  for (const auto& [participant, state] : participants_) {
    if (!state.waiting || state.applying) return {};
  }
  std::vector<Contribution> step;
  for (auto& [participant, state] : participants_) {
    step.push_back(std::move(*state.waiting));
    state.waiting.reset();
    state.applying = true;
  }
  return step;
}

void SyncPass::finish(const std::vector<Contribution>& step) {
  for (const Contribution& contribution : step) {
    const auto found = participants_.find(contribution.from);
    if (found != participants_.end()) found->second.applying = false;
  }
}

std::vector<Participant> SyncPass::participants() const {
  std::vector<Participant> out;
  for (const auto& [participant, state] : participants_) out.push_back(participant);
  return out;
}

std::vector<Respond> SyncPass::give_up() {
  std::vector<Respond> waiting;
  for (auto& [participant, state] : participants_) {
    if (state.waiting) waiting.push_back(std::move(state.waiting->respond));
  }
  participants_.clear();
  return waiting;
}

}  // namespace fleetrun::ps
