#include "ps/sync/barrier_rounds.h"

#include <utility>

namespace fleetrun::ps {

void BarrierRounds::arrive(std::uint32_t trainer, Entry entry) {
  for (Round& round : rounds_) {
    const auto found = round.find(trainer);
    if (found == round.end()) {
      round.emplace(trainer, std::move(entry));
      return;
    }
    if (entry.number != 0 && found->second.number == entry.number) {
      found->second.respond = [first = std::move(found->second.respond),
                               again = std::move(entry.respond)](Outcome outcome) {
        first(separate_copy(outcome));
        again(std::move(outcome));
      };
      return;
    }
  }
  rounds_.emplace_back().emplace(trainer, std::move(entry));
}

std::optional<BarrierRounds::Round> BarrierRounds::take_complete(const TrainerRegistry& trainer_registry) {
  // A round is empty when all who had arrived in it are gone.
  while (!rounds_.empty() && rounds_.front().empty()) rounds_.pop_front();
  if (rounds_.empty()) return std::nullopt;
  for (std::uint32_t trainer = 0; trainer < trainer_registry.trainers(); ++trainer) {
    if (trainer_registry.is_awaited(trainer) && !rounds_.front().contains(trainer)) return std::nullopt;
  }
  std::optional<Round> out(std::move(rounds_.front()));
  rounds_.pop_front();
  return out;
}

std::vector<Respond> BarrierRounds::drop(std::uint32_t trainer) {
  std::vector<Respond> waiting;
  for (Round& round : rounds_) {
    if (auto entry = round.extract(trainer); !entry.empty())
      waiting.push_back(std::move(entry.mapped().respond));
  }
  return waiting;
}

std::vector<Respond> BarrierRounds::give_up() {
  std::vector<Respond> waiting;
  for (Round& round : rounds_) {
    for (auto& [trainer, entry] : round) waiting.push_back(std::move(entry.respond));
  }
  rounds_.clear();
  return waiting;
}

}  // namespace fleetrun::ps
