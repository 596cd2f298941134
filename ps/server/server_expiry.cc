// Rows that expire by time (TableConfig::expire_seconds): looked for beside training, and erased between
// changes, as a cut lies, so that the log tells the same order.
#include <algorithm>
#include <utility>

#include "ps/server/server_state.h"

namespace fleetrun::ps {
namespace {

// Erased at once, and so how long changes wait.
constexpr std::size_t kSliceRows = 8192;
// All rows are looked at in this part of their time.
constexpr std::uint32_t kRounds = 4;

/// Closes the write barrier, unless somebody else has.
class BetweenChanges {
 public:
  explicit BetweenChanges(WriteBarrier& write_barrier)
      : write_barrier_(write_barrier), is_closed_(write_barrier.try_freeze()) {}
  ~BetweenChanges() {
    if (is_closed_) write_barrier_.open();
  }
  BetweenChanges(const BetweenChanges&) = delete;
  BetweenChanges& operator=(const BetweenChanges&) = delete;
  explicit operator bool() const noexcept { return is_closed_; }

 private:
  WriteBarrier& write_barrier_;
  bool is_closed_;
};

}  // namespace

std::uint64_t Server::expire_some() {
  const RequestGate::Pass pass(state_->gate);
  return pass ? state_->expire_some() : 0;
}

void Server::State::start_expiry() {
  const auto expires = [](const TableConfig& table) { return table.expire_seconds != 0; };
  if (std::ranges::none_of(options.tables, expires)) return;
  expirer = std::make_unique<Checkpointer>(options.expiry_interval, [this] {
    const RequestGate::Pass pass(gate);
    try {
      if (pass) expire_some();
    } catch (const Error& error) {
      if (durable) durable->report(error, false);
    }
  });
}

std::uint64_t Server::State::expire_some() {
  std::uint64_t erased = 0;
  const std::lock_guard lock(expiring);
  for (const TableConfig& table : options.tables) {
    if (table.expire_seconds == 0) continue;
    const std::uint64_t rows = current()->sparse(table.id).expiry_round();
    SparseTable::ExpiryPlace& place = expiry[table.id];
    const std::uint64_t until =
        place.seen + rows / std::max(table.expire_seconds / kRounds, 1u) + SparseTable::kShards;
    while (place.seen < until)
      erased += expire_slice(table.id, place, std::min<std::uint64_t>(until - place.seen, kSliceRows));
  }
  return erased;
}

std::uint64_t Server::State::expire_all(std::uint32_t id) {
  const auto table = std::ranges::find(options.tables, id, &TableConfig::id);
  if (table == options.tables.end() || table->expire_seconds == 0) return 0;
  std::uint64_t erased = 0;
  SparseTable::ExpiryPlace place;
  std::size_t shard = 0;
  do {
    shard = place.shard;
    erased += expire_slice(id, place, kSliceRows);
  } while (place.shard >= shard);
  return erased;
}

std::uint64_t Server::State::expire_slice(std::uint32_t id, SparseTable::ExpiryPlace& place,
                                          std::size_t rows) {
  const std::vector<std::uint64_t> found = current()->sparse(id).find_expired(place, rows);
  if (found.empty()) return 0;
  const BetweenChanges between(write_barrier);
  if (!between) return 0;  // a save is about to begin: the next round finds them again
  const std::shared_ptr<TableSet> set = current();
  const std::vector<std::uint64_t> keys = set->sparse(id).still_expired(found);
  if (keys.empty()) return 0;
  if (log_is_open) {
    const std::uint32_t head[] = {id, static_cast<std::uint32_t>(keys.size())};
    keep(Kept::expiry, {std::as_bytes(std::span(head)), std::as_bytes(std::span(keys))});
  }
  return set->sparse(id).erase(keys);
}

// What has expired by time goes before the day ends, and counts with what that erases.
void Server::State::shrink_expired(Reader body, Respond& respond) {
  const std::uint64_t expired = expire_all(body.value<std::uint32_t>());
  if (expired == 0) return;
  respond = [expired, respond = std::move(respond)](Outcome outcome) {
    Message* answer = std::get_if<Message>(&outcome);
    if (answer == nullptr || answer->size() != sizeof expired) return respond(std::move(outcome));
    respond(message_of(Reader(answer->bytes()).value<std::uint64_t>() + expired));
  };
}

}  // namespace fleetrun::ps
