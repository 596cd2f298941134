// The write barrier that every change to a server's tables goes through. It lets each numbered change in
// once, and it can be closed, so that a cut through the tables lies between changes.
//
//   a change    claim -> [enter] -> applied, refused or dropped
//   a cut       freeze -> [settle] -> (begin the cut) -> open
//
// A cut over several servers contains each change on all of them or on none: every server freezes and says
// how far each trainer's changes have come; each is told the maximum over all servers, and settles: it lets
// exactly the changes up to there in, and waits for them. While a write barrier is closed, changes are kept
// aside, not refused; pulls do not go through it.
#pragma once

#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "ps/base/push_history.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {

/// A trainer between two of its starts.
struct ClientId {
  std::uint32_t trainer = 0;
  std::uint64_t incarnation = 0;

  auto operator<=>(const ClientId&) const = default;
};

/// A change as its request names it. Number 0: it is not told apart from others, and may come twice.
struct ChangeId {
  ClientId client;
  std::uint64_t number = 0;

  auto operator<=>(const ChangeId&) const = default;
};

/// Threads: all calls may be made from several threads at once.
class WriteBarrier {
 public:
  /// The highest number of each client's changes.
  using Sequences = std::map<ClientId, std::uint64_t>;

  // For cuts. Only who has frozen it may settle and open it.

  /// Closes the write barrier, and returns when no change is inside. Waits while another cut holds it.
  Sequences freeze();
  /// The same, unless another cut holds it: false then, and it is the other's to open.
  bool try_freeze();
  /// Lets the changes up to `upto` in, and returns when all of them are applied, apart from those of clients
  /// that are gone. Throws: Error(timeout) naming the change that did not come within `patience`;
  /// the write barrier stays closed.
  void settle(const Sequences& upto, std::chrono::milliseconds patience);
  /// What was kept aside goes on, on this thread. Opening an open write barrier does nothing.
  void open();
  bool is_frozen() const;

  // For changes.

  enum class Answer {
    go_on,    // it is the caller's to apply
    applied,  // it was applied before
    later,    // `again` will be called, once, from another thread
  };
  /// `enters`: it is applied at once, and counts as inside; otherwise enter() follows.
  /// Throws: the Error that the change was refused with when it came first.
  Answer claim(const ChangeId& id, bool enters, std::function<void()> again);
  /// Blocks until the write barrier is open to all of these.
  void enter(const std::vector<ChangeId>& ids);
  /// Changes that are inside have been applied …
  void applied(const std::vector<ChangeId>& ids);
  /// … or were refused, and will be again.
  void refused(const std::vector<ChangeId>& ids, const Error& error);
  /// They were inside, and nothing has come of it: they may come again.
  void left(const std::vector<ChangeId>& ids);
  /// A claim that never entered is given up: the change may come again.
  void dropped(const ChangeId& id);

  /// The server is stopping: what is kept aside, and what comes from now on,
  /// is refused with Error(network). A cut under way goes on.
  void close();

  // Who makes changes.

  /// A trainer is here. What was known of an earlier incarnation of it is forgotten.
  /// Returns the number of its next change: it has none but those before it, all of them applied.
  std::uint64_t begin(const ClientId& client);
  /// Whether the trainer has made any that this knows of.
  bool has_changes(std::uint32_t trainer) const;
  /// It will make no changes for now, or for ever: a cut does not wait for them.
  void end(const ClientId& client);

  // For checkpoints and recovery.

  std::map<ClientId, PushHistory> histories() const;
  void restore(std::map<ClientId, PushHistory> histories);
  void note(const ChangeId& id);
  void note_refusal(const ChangeId& id, const Error& error);

 private:
  struct Client {
    PushHistory history;
    std::set<std::uint64_t> claimed;
    bool gone = false;
  };
  struct Kept {
    ChangeId id;
    std::function<void()> again;
  };
  using Again = std::vector<std::function<void()>>;

  bool is_open_to(const ChangeId& id) const;
  void check_not_closed() const;
  void release(const ChangeId& id, Again& again);
  void take_kept(Again& again);
  const ChangeId* find_missing(const Sequences& upto, ChangeId& missing) const;
  static void run(const Again& again);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<ClientId, Client> clients_;
  bool frozen_ = false;
  bool closed_ = false;
  Sequences allowed_;
  std::size_t inside_ = 0;
  std::vector<Kept> kept_;               // while the write barrier is closed to them
  std::multimap<ChangeId, Kept> twins_;  // of changes that are claimed
};

}  // namespace fleetrun::ps
