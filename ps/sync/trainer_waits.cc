#include "ps/sync/trainer_waits.h"

#include <algorithm>
#include <optional>

#include "ps/sync/barrier_service.h"

namespace fleetrun::ps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<const char*, BarrierService::kKinds> kCalls = {"barrier", "all_reduce", "begin_epoch"};

struct Began {
  const char* call;
  Clock::time_point since;
};

}  // namespace

TrainerWaits BarrierService::waits() const {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  TrainerWaits out;
  Clock::time_point last{};
  bool is_anybody_free = false;
  for (std::uint32_t trainer = 0; trainer < trainer_registry_.trainers(); ++trainer) {
    std::optional<Began> first;
    const auto note = [&first](const char* call, Clock::time_point since) {
      if (!first || since < first->since) first = {call, since};
    };
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      for (const BarrierRounds::Round& round : barrier_rounds_[kind].rounds())
        if (const auto entry = round.find(trainer); entry != round.end())
          note(kCalls[kind], entry->second.since);
    }
    if (const auto since = epoch_.waits_since(trainer)) note("push", *since);
    if (trainer_registry_.is_awaited(trainer) && !first) is_anybody_free = true;
    if (!first) continue;
    last = std::max(last, first->since);
    out.waits.push_back(
        {trainer, first->call, std::chrono::duration_cast<std::chrono::milliseconds>(now - first->since)});
  }
  if (!is_anybody_free && !out.waits.empty())
    out.stuck = std::chrono::duration_cast<std::chrono::milliseconds>(now - last);
  return out;
}

std::string text_of(const std::vector<TrainerWait>& waits) {
  std::string text;
  for (const TrainerWait& wait : waits) {
    text += (text.empty() ? "trainer " : ", trainer ") + std::to_string(wait.trainer) +
            (text.empty() ? " waits in " : " in ") + wait.call + " for " +
            std::to_string(std::chrono::floor<std::chrono::seconds>(wait.since).count()) + " s";
  }
  return text;
}

}  // namespace fleetrun::ps
