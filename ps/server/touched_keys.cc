#include "ps/server/touched_keys.h"

#include <algorithm>
#include <utility>

#include "ps/client/channel_client.h"

namespace fleetrun::ps {

TouchedKeys::TouchedKeys() : generation_(make_incarnation()) {}

void TouchedKeys::record(std::uint32_t trainer, std::uint32_t table, std::span<const std::uint64_t> keys) {
  std::vector<std::shared_ptr<Trainer>> others;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [rank, state] : trainers_) {
      if (rank != trainer) others.push_back(state);
    }
  }
  for (const std::shared_ptr<Trainer>& other : others) {
    const std::lock_guard lock(other->mutex);
    KeyIndex& touched = other->touched[table];
    for (const std::uint64_t key : keys) touched.add(key);
  }
}

// Up to `max` keys from `waiting`, which is filled from `touched` when it is empty. Whether some wait on.
bool TouchedKeys::hand_out(Trainer& trainer, std::size_t max, Keys& out) {
  if (trainer.waiting.empty()) {
    for (auto& [table, touched] : trainer.touched) {
      if (touched.size() > 0) trainer.waiting[table] = touched.take();
    }
  }
  while (!trainer.waiting.empty() && max > 0) {
    const auto first = trainer.waiting.begin();
    std::vector<std::uint64_t>& keys = first->second;
    const std::size_t count = std::min(max, keys.size());
    out[first->first].assign(keys.end() - static_cast<std::ptrdiff_t>(count), keys.end());
    keys.resize(keys.size() - count);
    max -= count;
    if (keys.empty()) trainer.waiting.erase(first);
  }
  return !trainer.waiting.empty();
}

TouchedKeys::Answer TouchedKeys::ask(const Asker& asker, std::size_t max) {
  std::shared_ptr<Trainer> trainer;
  std::uint64_t generation;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Trainer>& known = trainers_[asker.trainer];
    if (!known) known = std::make_shared<Trainer>();
    trainer = known;
    generation = generation_;
  }
  const std::lock_guard lock(trainer->mutex);
  if (trainer->incarnation != asker.incarnation) {
    trainer->incarnation = asker.incarnation;
    trainer->touched.clear();
    trainer->waiting.clear();
  } else if (trainer->number == asker.number) {
    return trainer->last;
  }
  Answer answer;
  answer.generation = generation;
  answer.more = hand_out(*trainer, max, answer.keys);
  trainer->number = asker.number;
  trainer->last = answer;
  return answer;
}

void TouchedKeys::forget(std::uint32_t trainer) {
  const std::lock_guard lock(mutex_);
  trainers_.erase(trainer);
}

void TouchedKeys::restart() {
  const std::lock_guard lock(mutex_);
  trainers_.clear();
  generation_ = make_incarnation();
}

}  // namespace fleetrun::ps
