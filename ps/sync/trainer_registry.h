// The trainer registry of a server: whom it expects, has, has deregistered, or has lost;
// and from which generation on a trainer's word counts.
//
//   expected     -> here      hello
//   here         -> done      goodbye
//   here         -> lost      its connection ended without a goodbye
//   done, lost   -> here      hello of a new incarnation
//   here         -> here      hello of a new incarnation, where the one before has never attended: it was
//                             killed while it connected, and nobody hears of the end of its connection
//   here         -> away      where trainers may come back (ServerOptions::recover_within): its connection
//                             ended, or the server itself was started again; others wait for it meanwhile
//   away         -> here      its hello by another connection, or that of a new incarnation
//   away         -> lost      it did not come back in time
//
// In a job whose worlds change in place (update()):
//
//   all but done -> absent    its host was lost: nobody waits for it, and what it still says is stale
//   absent       -> coming    the rank has a new holder
//   coming       -> here      its hello
//
// A trainer that comes while the others train has its own place in the script: nobody waits for it before it
// has met them once (join()), wherever that is. From then on it goes with them.
//
// The fence: each rank has the lowest generation that its holder can have. A trainer that was taken for lost
// and wakes up comes with a lower one, or as a rank that is absent, and is refused; a survivor is not,
// however late it hears of a new world. A trainer may know a world before the server does:
// then it is believed, and its rank's fence rises.
//
// Pure bookkeeping; ps/sync/barrier_service.h holds the lock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ps/base/bytes.h"
#include "ps/base/message.h"

namespace fleetrun::ps {

/// Who takes part in the job from a generation on, as fleetrun tells its processes
/// (launcher/run/world_feed).
struct MembershipUpdate {
  std::uint64_t generation = 0;
  bool in_place = false;                          // the job goes on while trainers come and go
  std::map<std::uint32_t, std::string> trainers;  // rank, and the launcher that it belongs to
};

/// What a trainer says of itself at its hello.
struct Newcomer {
  std::uint32_t trainer = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t generation = 0;
  std::string launcher = {};  // as in MembershipUpdate; empty when it was told none
  /// Tells its connections apart: another number with each hello, 0 where it makes one only.
  std::uint64_t connection = 0;
  /// wire::kBeginsAnew, wire::kCountsEpochs.
  std::uint32_t arrival = 0;
};

class TrainerRegistry {
 public:
  /// The connection of everybody who was here before the server was started again.
  static constexpr std::uint64_t kBeforeRestart = 1;

  /// `server` is how errors call this server: "server 0".
  /// `generation`: the world that it was started in, 0 without any.
  TrainerRegistry(std::string server, std::uint32_t trainers, std::uint64_t generation = 0);

  /// True for a trainer that was not there from the beginning: the others have begun without it.
  /// Throws: Error(config) for a rank beyond the trainers,
  /// one that another incarnation holds, or a stale generation.
  bool hello(const Newcomer& newcomer);
  bool hello(std::uint32_t trainer, std::uint64_t incarnation) { return hello({trainer, incarnation}); }
  /// Throws unless this incarnation of the trainer is here: Error(config) after its goodbye or when it is
  /// stale, Error(network) when it was lost or never came, as after a restart of the server.
  void require(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t generation = 0) const;
  /// Whether the trainer belongs to a generation that is over for it.
  bool is_stale(std::uint32_t trainer, std::uint64_t generation) const;
  /// The trainer has met the others: they wait for it from now on.
  void join(std::uint32_t trainer) { entries_[trainer].joined = true; }
  bool has_joined(std::uint32_t trainer) const { return entries_[trainer].joined; }
  /// Whether it goes on for a process that was here before it.
  void set_continues(std::uint32_t trainer, bool continues) { entries_[trainer].continues = continues; }
  bool continues(std::uint32_t trainer) const { return entries_[trainer].continues; }
  /// The end of its connection is heard of from now on.
  void attend(std::uint32_t trainer) { entries_[trainer].attends = true; }
  void goodbye(std::uint32_t trainer);
  /// True when that incarnation was here; it is lost now.
  bool lose(std::uint32_t trainer, std::uint64_t incarnation);
  /// True when that incarnation was here by that connection, or by any for 0;
  /// it is away now, and may come back.
  bool leave_for_now(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t connection);
  /// Whether it is away, and has been since that connection ended; 0 for any.
  bool is_away(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t connection) const;
  /// Whether this is another process of a trainer that is away, done, or was killed while it connected, which
  /// may go on for it.
  bool succeeds(const Newcomer& newcomer) const;
  /// Whether another process of this trainer was here before, of a script that now begins again;
  /// after_goodbye: also when it had said goodbye.
  bool begins_again(const Newcomer& newcomer, bool after_goodbye) const;
  /// Whether that incarnation is here by that connection, or by any for 0.
  bool is_here_by(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t connection) const;
  /// All who are here are away: the server was started again.
  void all_leave_for_now();
  std::uint64_t incarnation(std::uint32_t trainer) const {
    return trainer < entries_.size() ? entries_[trainer].incarnation : 0;
  }
  /// A new world. Returns the ranks whose holders are gone;
  /// one that is older than the newest changes nothing.
  std::vector<std::uint32_t> update(const MembershipUpdate& membership_update);

  std::uint32_t trainers() const noexcept { return static_cast<std::uint32_t>(entries_.size()); }
  /// True once a world said that trainers come and go.
  bool is_in_place() const noexcept { return in_place_; }
  std::uint64_t generation() const noexcept { return generation_; }
  bool is_here(std::uint32_t trainer) const {
    return trainer < entries_.size() && entries_[trainer].presence == Presence::here;
  }
  bool is_done(std::uint32_t trainer) const { return entries_[trainer].presence == Presence::done; }
  /// Whether those who meet wait for it.
  bool is_awaited(std::uint32_t trainer) const;
  bool are_all_done() const;
  /// The lowest rank that is lost.
  std::optional<std::uint32_t> lost() const;
  /// What a stale trainer is told.
  std::string stale_text(std::uint32_t trainer, std::uint64_t generation) const;

  /// For checkpoints: all of it but its name. Throws: Error(data).
  void write(Bytes& out) const;
  void read(Reader& in);

 private:
  enum class Presence { expected, here, done, lost, absent, coming, away };
  struct Entry {
    Presence presence = Presence::expected;
    std::uint64_t incarnation = 0;
    std::uint64_t fence = 0;  // the lowest generation that its holder can have
    std::uint64_t since = 0;  // the generation that its holder said hello with
    bool joined = true;
    std::string launcher = {};
    std::uint64_t connection = 0;
    bool attends = false;
    bool continues = false;
  };
  /// Whether it is here by a connection of which it would not be known if it had ended.
  static bool may_be_gone(const Entry& entry) noexcept;
  bool leave(Entry& entry);
  bool change_holder(Entry& entry, const std::string& launcher, std::uint64_t before);

  std::string server_;
  std::uint64_t generation_;  // of the newest world that was told here
  std::uint64_t newest_;      // that anybody has come with
  bool in_place_ = false;
  bool has_world_ = false;
  std::vector<Entry> entries_;
};

}  // namespace fleetrun::ps
