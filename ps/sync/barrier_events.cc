//   event  kind u32 (the variant's index; 8 for a TrainerCame with an arrival, which comes last)
//          | its fields in order; lists and texts with their length first
#include "ps/sync/barrier_events.h"

#include <array>
#include <string>

#include "ps/base/wire.h"
#include "runtime/base/error.h"
#include "runtime/base/overloaded.h"

namespace fleetrun::ps {
namespace {

constexpr std::uint32_t kCameSo = 8;

TrainerCame read_came(Reader& in, bool says_how) {
  Newcomer newcomer;
  newcomer.trainer = in.value<std::uint32_t>();
  newcomer.incarnation = in.value<std::uint64_t>();
  newcomer.generation = in.value<std::uint64_t>();
  newcomer.launcher = wire::read_text(in);
  if (says_how) newcomer.arrival = in.value<std::uint32_t>();
  return {newcomer};
}

RoundDone read_round(Reader& in) {
  RoundDone round;
  round.kind = in.value<std::uint32_t>();
  const auto parts = in.value<std::uint32_t>();
  for (std::uint32_t i = 0; i < parts; ++i) {
    RoundDone::Part part;
    part.trainer = in.value<std::uint32_t>();
    part.number = in.value<std::uint64_t>();
    const auto count = in.value<std::uint64_t>();
    Message copy;
    const auto values = in.array<double>(count, copy);
    part.values.assign(values.begin(), values.end());
    round.parts.push_back(std::move(part));
  }
  return round;
}

EpochJoined read_joined(Reader& in) {
  EpochJoined joined;
  joined.trainer = in.value<std::uint32_t>();
  joined.threads = in.value<std::uint32_t>();
  joined.number = in.value<std::uint64_t>();
  return joined;
}

TrainerLost read_lost(Reader& in) {
  const auto trainer = in.value<std::uint32_t>();
  return {trainer, in.value<std::uint64_t>()};
}

EpochLeft read_left(Reader& in) {
  const auto trainer = in.value<std::uint32_t>();
  return {{trainer, in.value<std::uint32_t>()}};
}

EpochBegun read_begun(Reader& in) {
  EpochBegun begun;
  begun.trainer = in.value<std::uint32_t>();
  begun.number = in.value<std::uint64_t>();
  begun.epoch = in.value<wire::BeginEpoch>();
  return begun;
}

void write_round(Bytes& out, const RoundDone& round) {
  out.value(round.kind);
  out.value(static_cast<std::uint32_t>(round.parts.size()));
  for (const RoundDone::Part& part : round.parts) {
    out.value(part.trainer);
    out.value(part.number);
    out.value(std::uint64_t{part.values.size()});
    out.array(std::span<const double>(part.values));
  }
}

}  // namespace

void write(Bytes& out, const MembershipUpdate& membership_update) {
  out.value(membership_update.generation);
  out.value(std::uint32_t{membership_update.in_place ? 1u : 0u});
  out.value(static_cast<std::uint32_t>(membership_update.trainers.size()));
  for (const auto& [rank, launcher] : membership_update.trainers) {
    out.value(rank);
    out.text(launcher);
  }
}

MembershipUpdate read_membership_update(Reader& in) {
  MembershipUpdate membership_update;
  membership_update.generation = in.value<std::uint64_t>();
  membership_update.in_place = in.value<std::uint32_t>() != 0;
  const auto trainers = in.value<std::uint32_t>();
  for (std::uint32_t i = 0; i < trainers; ++i) {
    const auto rank = in.value<std::uint32_t>();
    membership_update.trainers[rank] = wire::read_text(in);
  }
  return membership_update;
}

void write(Bytes& out, const BarrierEvent& event) {
  const auto* arrival = std::get_if<TrainerCame>(&event);
  const std::uint32_t how = arrival != nullptr ? arrival->newcomer.arrival : 0;
  out.value(how != 0 ? kCameSo : static_cast<std::uint32_t>(event.index()));
  std::visit(Overloaded{
                 [&](const TrainerCame& came) {
                   out.value(came.newcomer.trainer);
                   out.value(came.newcomer.incarnation);
                   out.value(came.newcomer.generation);
                   out.text(came.newcomer.launcher);
                   if (how != 0) out.value(how);
                 },
                 [&](const TrainerDone& done) { out.value(done.trainer); },
                 [&](const TrainerLost& lost) {
                   out.value(lost.trainer);
                   out.value(lost.incarnation);
                 },
                 [&](const WorldChanged& world) { write(out, world.membership_update); },
                 [&](const RoundDone& round) { write_round(out, round); },
                 [&](const EpochJoined& joined) {
                   out.value(joined.trainer);
                   out.value(joined.threads);
                   out.value(joined.number);
                 },
                 [&](const EpochLeft& left) {
                   out.value(left.participant.trainer);
                   out.value(left.participant.thread);
                 },
                 [&](const EpochBegun& begun) {
                   out.value(begun.trainer);
                   out.value(begun.number);
                   out.value(begun.epoch);
                 },
             },
             event);
}

BarrierEvent read_barrier_event(Reader& in) {
  static_assert(std::variant_size_v<BarrierEvent> == kCameSo);
  const auto kind = in.value<std::uint32_t>();
  switch (kind) {
    case 0:
      return read_came(in, false);
    case 1:
      return TrainerDone{in.value<std::uint32_t>()};
    case 2:
      return read_lost(in);
    case 3:
      return WorldChanged{read_membership_update(in)};
    case 4:
      return read_round(in);
    case 5:
      return read_joined(in);
    case 6:
      return read_left(in);
    case 7:
      return read_begun(in);
    case kCameSo:
      return read_came(in, true);
    default:
      throw Error(ErrorKind::data, "no event where trainers meet has the number " + std::to_string(kind));
  }
}

}  // namespace fleetrun::ps
