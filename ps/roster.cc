#include "ps/roster.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace fleetrun::ps {

Roster::Roster(std::string server, std::uint32_t trainers) : server_(std::move(server)), entries_(trainers) {}

void Roster::hello(std::uint32_t trainer, std::uint64_t incarnation) {
  const std::string name = "trainer " + std::to_string(trainer);
  if (trainer >= entries_.size()) {
    throw Error(ErrorKind::config,
                name + " wants to join, but " + server_ + " expects " + std::to_string(entries_.size()) +
                    " trainers, with ranks from 0",
                "start servers and trainers with the same number of trainers");
  }
  Entry& entry = entries_[trainer];
  if (entry.presence == Presence::here && entry.incarnation != incarnation) {
    throw Error(ErrorKind::config, name + " is connected to " + server_ + " already",
                "give each trainer a rank of its own");
  }
  entry = {Presence::here, incarnation};
}

void Roster::require(std::uint32_t trainer, std::uint64_t incarnation) const {
  const std::string name = "trainer " + std::to_string(trainer);
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

void Roster::goodbye(std::uint32_t trainer) {
  entries_[trainer].presence = Presence::done;
}

bool Roster::lose(std::uint32_t trainer, std::uint64_t incarnation) {
  if (trainer >= entries_.size()) return false;
  Entry& entry = entries_[trainer];
  if (entry.presence != Presence::here || entry.incarnation != incarnation) return false;
  entry.presence = Presence::lost;
  return true;
}

bool Roster::are_all_done() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.presence == Presence::done; });
}

std::optional<std::uint32_t> Roster::lost() const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].presence == Presence::lost) return static_cast<std::uint32_t>(i);
  }
  return std::nullopt;
}

}  // namespace fleetrun::ps
