#include "ps/sync/trainer_registry.h"

#include <algorithm>
#include <utility>

#include "ps/base/greeting.h"
#include "ps/base/wire.h"
#include "runtime/base/defences.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

// Of a trainer that is written down.
constexpr std::uint32_t kJoined = 1, kContinues = 2;

std::string name_of(std::uint32_t trainer) {
  return "trainer " + std::to_string(trainer);
}

Error stale(const std::string& text) {
  return Error(ErrorKind::config, text,
               "this trainer was taken for lost, and others have its part; end it, and start it again where "
               "the job takes newcomers");
}

}  // namespace

TrainerRegistry::TrainerRegistry(std::string server, std::uint32_t trainers, std::uint64_t generation)
    : server_(std::move(server)), generation_(generation), newest_(generation), entries_(trainers) {
  for (Entry& entry : entries_) entry.fence = generation;
}

// One that makes no more than one connection, 0, does not attend.
bool TrainerRegistry::may_be_gone(const Entry& entry) noexcept {
  return entry.presence == Presence::here && entry.connection != 0 && !entry.attends;
}

bool TrainerRegistry::hello(const Newcomer& newcomer) {
  const std::string name = name_of(newcomer.trainer);
  const bool knows_more = newcomer.generation > generation_;
  if (newcomer.trainer >= entries_.size() && in_place_ && knows_more &&
      newcomer.trainer < entries_.size() + 65536) {
    entries_.resize(newcomer.trainer + 1, {.presence = Presence::absent, .fence = generation_ + 1});
  }
  if (newcomer.trainer >= entries_.size()) {
    throw Error(ErrorKind::config,
                name + " wants to join, but " + server_ + " expects " + std::to_string(entries_.size()) +
                    " trainers, with ranks from 0",
                "start servers and trainers with the same number of trainers");
  }
  if (is_stale(newcomer.trainer, newcomer.generation))
    throw stale(stale_text(newcomer.trainer, newcomer.generation));
  Entry& entry = entries_[newcomer.trainer];
  const bool another = !knows_more && !entry.launcher.empty() && !newcomer.launcher.empty() &&
                       entry.launcher != newcomer.launcher;
  if (another) throw stale(name + " belongs to another host in epoch " + std::to_string(generation_));
  const bool replaces = in_place_ && newcomer.generation > std::max(entry.since, entry.fence);
  if (entry.presence == Presence::here && entry.incarnation != newcomer.incarnation && !replaces &&
      !may_be_gone(entry)) {
    throw Error(ErrorKind::config, name + " is connected to " + server_ + " already",
                "give each trainer a rank of its own");
  }
  const bool is_same = (entry.presence == Presence::here || entry.presence == Presence::away) &&
                       entry.incarnation == newcomer.incarnation;
  const bool is_late = in_place_ && entry.presence != Presence::expected && !is_same;
  newest_ = std::max(newest_, newcomer.generation);
  if (knows_more && in_place_) entry.fence = std::max(entry.fence, newcomer.generation);
  entry.presence = Presence::here;
  if (!is_same) entry.joined = !is_late;
  entry.incarnation = newcomer.incarnation;
  entry.connection = newcomer.connection;
  entry.attends = false;
  entry.since = newcomer.generation;
  if (!newcomer.launcher.empty()) entry.launcher = newcomer.launcher;
  return is_late;
}

bool TrainerRegistry::is_stale(std::uint32_t trainer, std::uint64_t generation) const {
  if (trainer >= entries_.size() || !defends("fenced trainers")) return false;
  const Entry& entry = entries_[trainer];
  return generation < entry.fence ||
         (entry.presence == Presence::absent && generation <= generation_ && in_place_);
}

std::string TrainerRegistry::stale_text(std::uint32_t trainer, std::uint64_t generation) const {
  return name_of(trainer) + " comes with stale epoch " + std::to_string(generation) + ", the job is at " +
         std::to_string(newest_);
}

void TrainerRegistry::require(std::uint32_t trainer, std::uint64_t incarnation,
                              std::uint64_t generation) const {
  const std::string name = name_of(trainer);
  if (is_stale(trainer, generation)) throw stale(stale_text(trainer, generation));
  if (trainer < entries_.size()) {
    const Entry& entry = entries_[trainer];
    if (entry.presence == Presence::here && entry.incarnation == incarnation) return;
    if (entry.presence == Presence::done) {
      throw Error(ErrorKind::config, name + " has said goodbye to " + server_ + " already");
    }
    if (entry.presence == Presence::lost) {
      throw Error(ErrorKind::network, server_ + " has lost its connection to " + name);
    }
  }
  throw Error(ErrorKind::network, name + " is not known to " + server_ + "; was the server started again?",
              "restart the job: what this trainer knew of is gone with the old server");
}

void TrainerRegistry::goodbye(std::uint32_t trainer) {
  entries_[trainer].presence = Presence::done;
}

bool TrainerRegistry::lose(std::uint32_t trainer, std::uint64_t incarnation) {
  if (trainer >= entries_.size()) return false;
  Entry& entry = entries_[trainer];
  const bool was_there = entry.presence == Presence::here || entry.presence == Presence::away;
  if (!was_there || entry.incarnation != incarnation) return false;
  entry.presence = Presence::lost;
  return true;
}

bool TrainerRegistry::leave_for_now(std::uint32_t trainer, std::uint64_t incarnation,
                                    std::uint64_t connection) {
  if (!is_here_by(trainer, incarnation, connection)) return false;
  entries_[trainer].presence = Presence::away;
  return true;
}

bool TrainerRegistry::is_here_by(std::uint32_t trainer, std::uint64_t incarnation,
                                 std::uint64_t connection) const {
  if (!is_here(trainer)) return false;
  const Entry& entry = entries_[trainer];
  return entry.incarnation == incarnation && (connection == 0 || entry.connection == connection);
}

bool TrainerRegistry::is_away(std::uint32_t trainer, std::uint64_t incarnation,
                              std::uint64_t connection) const {
  if (trainer >= entries_.size()) return false;
  const Entry& entry = entries_[trainer];
  return entry.presence == Presence::away && entry.incarnation == incarnation &&
         (connection == 0 || entry.connection == connection);
}

bool TrainerRegistry::succeeds(const Newcomer& newcomer) const {
  const bool begins_anew = (newcomer.arrival & wire::kBeginsAnew) != 0;
  if (in_place_ || begins_anew || newcomer.trainer >= entries_.size()) return false;
  const Entry& entry = entries_[newcomer.trainer];
  return entry.incarnation != newcomer.incarnation &&
         (entry.presence == Presence::away || entry.presence == Presence::done || may_be_gone(entry));
}

bool TrainerRegistry::begins_again(const Newcomer& newcomer, bool after_goodbye) const {
  const bool begins_anew = (newcomer.arrival & wire::kBeginsAnew) != 0;
  if (in_place_ || begins_anew || newcomer.trainer >= entries_.size()) return false;
  const Entry& entry = entries_[newcomer.trainer];
  return entry.incarnation != 0 && entry.incarnation != newcomer.incarnation &&
         (after_goodbye || entry.presence != Presence::done);
}

void TrainerRegistry::all_leave_for_now() {
  for (Entry& entry : entries_) {
    if (entry.presence != Presence::here && entry.presence != Presence::away) continue;
    entry.presence = Presence::away;
    entry.connection = kBeforeRestart;
  }
}

void TrainerRegistry::write(Bytes& out) const {
  out.value(generation_);
  out.value(newest_);
  out.value(std::uint32_t{in_place_ ? 1u : 0u});
  out.value(std::uint32_t{has_world_ ? 1u : 0u});
  out.value(trainers());
  for (const Entry& entry : entries_) {
    out.value(static_cast<std::uint32_t>(entry.presence));
    out.value((entry.joined ? kJoined : 0u) | (entry.continues ? kContinues : 0u));
    out.value(entry.incarnation);
    out.value(entry.fence);
    out.value(entry.since);
    out.text(entry.launcher);
  }
}

void TrainerRegistry::read(Reader& in) {
  generation_ = in.value<std::uint64_t>();
  newest_ = in.value<std::uint64_t>();
  in_place_ = in.value<std::uint32_t>() != 0;
  has_world_ = in.value<std::uint32_t>() != 0;
  entries_.clear();
  const auto trainers = in.value<std::uint32_t>();
  for (std::uint32_t i = 0; i < trainers; ++i) {
    Entry entry;
    const auto presence = in.value<std::uint32_t>();
    if (presence > static_cast<std::uint32_t>(Presence::away))
      throw Error(ErrorKind::data, "no presence of a trainer has the number " + std::to_string(presence));
    entry.presence = static_cast<Presence>(presence);
    const auto flags = in.value<std::uint32_t>();
    entry.joined = (flags & kJoined) != 0;
    entry.continues = (flags & kContinues) != 0;
    entry.incarnation = in.value<std::uint64_t>();
    entry.fence = in.value<std::uint64_t>();
    entry.since = in.value<std::uint64_t>();
    entry.launcher = wire::read_text(in);
    entries_.push_back(std::move(entry));
  }
}

std::vector<std::uint32_t> TrainerRegistry::update(const MembershipUpdate& membership_update) {
  std::vector<std::uint32_t> gone;
  if (membership_update.generation < generation_ ||
      (has_world_ && membership_update.generation == generation_))
    return gone;
  // The newest generation in which another may have held a rank.
  std::uint64_t before = std::exchange(generation_, membership_update.generation);
  if (!std::exchange(has_world_, true) && before > 0 && before == generation_) --before;
  in_place_ = membership_update.in_place;
  newest_ = std::max(newest_, generation_);
  if (!in_place_) return gone;  // what changes is started again, servers too
  if (!membership_update.trainers.empty() && membership_update.trainers.rbegin()->first >= entries_.size())
    entries_.resize(membership_update.trainers.rbegin()->first + 1,
                    {.presence = Presence::absent, .fence = before});
  for (std::uint32_t trainer = 0; trainer < entries_.size(); ++trainer) {
    Entry& entry = entries_[trainer];
    const auto found = membership_update.trainers.find(trainer);
    bool is_gone = false;
    if (found == membership_update.trainers.end()) {
      is_gone = leave(entry);
    } else if (entry.presence == Presence::absent ||
               (!entry.launcher.empty() && entry.launcher != found->second)) {
      is_gone = change_holder(entry, found->second, before);
    } else {
      entry.launcher = found->second;
    }
    if (is_gone) gone.push_back(trainer);
  }
  return gone;
}

// True when somebody held the rank until now.
bool TrainerRegistry::leave(Entry& entry) {
  // It knows a world that has not been told here yet.
  if (entry.presence == Presence::here && entry.since > generation_) return false;
  entry.launcher.clear();
  if (entry.presence == Presence::done || entry.presence == Presence::absent) return false;
  entry.presence = Presence::absent;
  entry.fence = generation_ + 1;
  return true;
}

bool TrainerRegistry::change_holder(Entry& entry, const std::string& launcher, std::uint64_t before) {
  entry.launcher = launcher;
  // The new holder has said hello already; whoever was there before it was sent away then.
  if (entry.presence == Presence::here && entry.since > before) return false;
  const bool was_held = entry.presence == Presence::here || entry.presence == Presence::lost ||
                        entry.presence == Presence::expected || entry.presence == Presence::away;
  entry.presence = Presence::coming;
  entry.fence = std::max(entry.fence, before + 1);
  return was_held;
}

bool TrainerRegistry::is_awaited(std::uint32_t trainer) const {
  const Presence presence = entries_[trainer].presence;
  if (!entries_[trainer].joined) return false;
  return presence == Presence::expected || presence == Presence::here || presence == Presence::lost ||
         presence == Presence::away;
}

bool TrainerRegistry::are_all_done() const {
  const auto count = [this](Presence presence) {
    return std::count_if(entries_.begin(), entries_.end(),
                         [presence](const Entry& entry) { return entry.presence == presence; });
  };
  const auto done = count(Presence::done);
  return done > 0 && done + count(Presence::absent) == static_cast<std::ptrdiff_t>(entries_.size());
}

std::optional<std::uint32_t> TrainerRegistry::lost() const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].presence == Presence::lost) return static_cast<std::uint32_t>(i);
  }
  return std::nullopt;
}

}  // namespace fleetrun::ps
