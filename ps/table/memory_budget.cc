// Room is made a little ahead (a 64th of the limit), so that it is not looked for with every request.
#include "ps/table/memory_budget.h"

#include <algorithm>

namespace fleetrun::ps {
namespace {

constexpr std::size_t kRowsAtOnce = 1024;

}  // namespace

void MemoryBudget::join(Coolable& table) {
  const std::unique_lock lock(moving_);
  tables_.push_back(&table);
}

void MemoryBudget::leave(Coolable& table) noexcept {
  const std::unique_lock lock(moving_);
  std::erase(tables_, &table);
  hand_ = {};
}

void MemoryBudget::make_room() {
  if (used() <= limit_) return;
  const std::unique_lock lock(moving_);
  if (used() <= limit_) return;
  const std::uint64_t goal = limit_ - limit_ / 64;
  // Everything that was used is passed once without leaving;
  // when a second round has moved nothing, nothing will.
  std::uint64_t min = used();
  for (int rounds = 0; rounds < 3 && used() > goal && !tables_.empty();) {
    if (step()) ++rounds;
    if (used() < min) {
      min = used();
      rounds = 0;
    }
  }
}

// Looks at some rows. True when the hand has been everywhere and is at the first shard
// of the first table again.
bool MemoryBudget::step() {
  if (!tables_[hand_.table]->cool(hand_.shard, kRowsAtOnce)) return false;
  if (++hand_.shard < tables_[hand_.table]->shards()) return false;
  hand_.shard = 0;
  hand_.table = (hand_.table + 1) % tables_.size();
  return hand_.table == 0;
}

}  // namespace fleetrun::ps
