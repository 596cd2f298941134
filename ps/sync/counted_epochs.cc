#include "ps/sync/counted_epochs.h"

#include <algorithm>
#include <string>

#include "runtime/base/error.h"

namespace fleetrun::ps {

// Epochs that a trainer began on other servers and not here, before it was started again: few.
static constexpr std::uint64_t kMostMissed = 4096;

void CountedEpochs::begin(std::uint32_t trainer, std::uint64_t number, const wire::BeginEpoch& epoch) {
  const auto found = trainers_.find(trainer);
  if (found == trainers_.end() || number <= found->second.marks.size()) return;
  Trainer& known = found->second;
  if (number - known.marks.size() > kMostMissed)
    throw Error(ErrorKind::data, "epoch " + std::to_string(number) + " of trainer " +
                                     std::to_string(trainer) + " begins after epoch " +
                                     std::to_string(known.marks.size()));
  known.marks.resize(number - 1);
  known.marks.push_back(epoch.mark);
  known.threads.assign(epoch.threads, {});
}

void CountedEpochs::leave(const Participant& participant) {
  const auto found = trainers_.find(participant.trainer);
  if (found == trainers_.end() || participant.thread >= found->second.threads.size()) return;
  found->second.threads[participant.thread].has_left = 1;
}

void CountedEpochs::count(std::uint32_t trainer, std::span<const std::uint32_t> threads, bool refused) {
  const auto found = trainers_.find(trainer);
  if (found == trainers_.end()) return;
  for (const std::uint32_t thread : threads) {
    std::vector<Thread>& counted = found->second.threads;
    if (thread >= counted.size() || counted[thread].has_left != 0)
      found->second.is_countable = 0;
    else if (refused)
      --counted[thread].steps;
    else
      ++counted[thread].steps;
  }
}

std::vector<std::uint64_t> CountedEpochs::steps(std::uint32_t trainer) const {
  std::vector<std::uint64_t> out;
  for (const Thread& thread : trainers_.at(trainer).threads) out.push_back(thread.steps);
  return out;
}

bool CountedEpochs::is_cut(std::uint32_t trainer) const {
  return std::ranges::any_of(trainers_.at(trainer).threads,
                             [](const Thread& thread) { return thread.has_left == 0; });
}

void CountedEpochs::write(Bytes& out) const {
  out.value(static_cast<std::uint32_t>(trainers_.size()));
  for (const auto& [trainer, known] : trainers_) {
    out.value(trainer);
    out.value(std::uint64_t{known.marks.size()});
    out.array(std::span<const wire::EpochMark>(known.marks));
    out.value(std::uint64_t{known.threads.size()});
    out.array(std::span<const Thread>(known.threads));
    out.value(known.is_countable);
  }
}

void CountedEpochs::read(Reader& in) {
  const auto trainers = in.value<std::uint32_t>();
  for (std::uint32_t i = 0; i < trainers; ++i) {
    Trainer& known = trainers_[in.value<std::uint32_t>()];
    Message copy;
    const auto marks = in.array<wire::EpochMark>(in.value<std::uint64_t>(), copy);
    known.marks.assign(marks.begin(), marks.end());
    Message more;
    const auto threads = in.array<Thread>(in.value<std::uint64_t>(), more);
    known.threads.assign(threads.begin(), threads.end());
    known.is_countable = in.value<std::uint64_t>();
  }
}

}  // namespace fleetrun::ps
