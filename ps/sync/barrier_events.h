// What happens where trainers meet, as a server's log keeps it: told again in the same order to another
// Barrier service, it makes that one what this one was. What a trainer waits for is not an event: it asks
// again.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "ps/base/bytes.h"
#include "ps/base/greeting.h"
#include "ps/base/message.h"
#include "ps/sync/sync_epoch.h"
#include "ps/sync/trainer_registry.h"

namespace fleetrun::ps {

struct TrainerCame {
  Newcomer newcomer;
};
struct TrainerDone {
  std::uint32_t trainer = 0;
};
struct TrainerLost {
  std::uint32_t trainer = 0;
  std::uint64_t incarnation = 0;
};
struct WorldChanged {
  MembershipUpdate membership_update;
};
/// A barrier, a sum or the start of an epoch is complete.
struct RoundDone {
  struct Part {
    std::uint32_t trainer = 0;
    std::uint64_t number = 0;
    std::vector<double> values;
  };
  std::uint32_t kind = 0;  // BarrierService::Kind; the values of its parts are as there
  std::vector<Part> parts;
};
/// A trainer takes part in the epoch that is under way.
struct EpochJoined {
  std::uint32_t trainer = 0;
  std::uint32_t threads = 0;
  std::uint64_t number = 0;
};
struct EpochLeft {
  Participant participant;
};

/// A trainer that waits for nobody begins an epoch.
struct EpochBegun {
  std::uint32_t trainer = 0;
  std::uint64_t number = 0;
  wire::BeginEpoch epoch = {};
};

using BarrierEvent = std::variant<TrainerCame, TrainerDone, TrainerLost, WorldChanged, RoundDone, EpochJoined,
                                  EpochLeft, EpochBegun>;

void write(Bytes& out, const BarrierEvent& event);
/// Throws: Error(data) for anything that write() did not write.
BarrierEvent read_barrier_event(Reader& in);

void write(Bytes& out, const MembershipUpdate& membership_update);
MembershipUpdate read_membership_update(Reader& in);

}  // namespace fleetrun::ps
