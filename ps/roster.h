// Which trainers a server expects, has, has seen off, or has lost.
//
//   expected -> here      hello
//   here     -> done      goodbye
//   here     -> lost      its connection ended without a goodbye
//   done, lost -> here    hello of a new incarnation
//
// Pure bookkeeping; ps/meeting.h holds the lock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fleetrun::ps {

class Roster {
 public:
  /// `server` is how errors call this server: "server 0".
  Roster(std::string server, std::uint32_t trainers);

  /// Throws: Error(config) for a rank beyond the trainers, or one that another incarnation holds.
  void hello(std::uint32_t trainer, std::uint64_t incarnation);
  /// Throws unless this incarnation of the trainer is here: Error(config) after its goodbye, Error(network)
  /// when it was lost or never came, as after a restart of the server.
  void require(std::uint32_t trainer, std::uint64_t incarnation) const;
  void goodbye(std::uint32_t trainer);
  /// True when that incarnation was here; it is lost now.
  bool lose(std::uint32_t trainer, std::uint64_t incarnation);

  std::uint32_t trainers() const noexcept { return static_cast<std::uint32_t>(entries_.size()); }
  bool is_here(std::uint32_t trainer) const { return entries_[trainer].presence == Presence::here; }
  bool is_done(std::uint32_t trainer) const { return entries_[trainer].presence == Presence::done; }
  bool are_all_done() const;
  /// The lowest rank that is lost.
  std::optional<std::uint32_t> lost() const;

 private:
  enum class Presence { expected, here, done, lost };
  struct Entry {
    Presence presence = Presence::expected;
    std::uint64_t incarnation = 0;
  };

  std::string server_;
  std::vector<Entry> entries_;
};

}  // namespace fleetrun::ps
