// A barrier service written down, and made again from that and from what happened afterwards.
#include <utility>

#include "ps/sync/barrier_service.h"
#include "runtime/base/overloaded.h"

namespace fleetrun::ps {
void BarrierService::describe(const std::function<void(const Bytes&)>& with) const {
  const std::lock_guard lock(mutex_);
  Bytes out;
  trainer_registry_.write(out);
  for (const auto& completed : completed_) {
    out.value(static_cast<std::uint32_t>(completed.size()));
    for (const auto& [trainer, last] : completed) {
      out.value(trainer);
      out.value(last.number);
      out.value(std::uint64_t{last.values});
      write_outcome(out, *last.outcome);
    }
  }
  sums_.write(out);
  epoch_.write(out);
  counted_.write(out);
  with(out);
}

void BarrierService::restore(Reader& in) {
  const std::lock_guard lock(mutex_);
  trainer_registry_.read(in);
  for (auto& completed : completed_) {
    const auto trainers = in.value<std::uint32_t>();
    for (std::uint32_t i = 0; i < trainers; ++i) {
      const auto trainer = in.value<std::uint32_t>();
      Completed& last = completed[trainer];
      last.number = in.value<std::uint64_t>();
      last.values = in.value<std::uint64_t>();
      last.outcome = std::make_shared<Outcome>(read_outcome(in));
    }
  }
  sums_.read(in);
  epoch_.read(in);
  counted_.read(in);
}

void BarrierService::replay(const BarrierEvent& event) {
  const std::lock_guard lock(mutex_);
  Answers nobody_waits;
  std::visit(
      Overloaded{
          [&](const TrainerCame& came) {
            const std::uint64_t before = trainer_registry_.incarnation(came.newcomer.trainer);
            // It was taken in then: whoever had the rank had gone, of which the log says nothing.
            if (before != came.newcomer.incarnation)
              trainer_registry_.leave_for_now(came.newcomer.trainer, before, 0);
            const bool succeeds = trainer_registry_.succeeds(came.newcomer);
            trainer_registry_.hello(came.newcomer);
            come(came.newcomer, succeeds, before, nobody_waits);
          },
          [&](const TrainerDone& done) {
            trainer_registry_.goodbye(done.trainer);
            epoch_.leave_all(done.trainer);
          },
          [&](const TrainerLost& lost) {
            trainer_registry_.lose(lost.trainer, lost.incarnation);
            give_up_on(lost.trainer, nobody_waits);
          },
          [&](const WorldChanged& world) {
            for (const std::uint32_t trainer : trainer_registry_.update(world.membership_update))
              epoch_.leave_all(trainer);
          },
          [&](const RoundDone& done) {
            BarrierRounds::Round round;
            for (const RoundDone::Part& part : done.parts)
              round[part.trainer] = {part.values, [](Outcome) {}, part.number};
            complete_round(static_cast<Kind>(done.kind), std::move(round), nobody_waits);
          },
          [&](const EpochJoined& joined) { join_epoch(joined.trainer, joined.threads, joined.number); },
          [&](const EpochLeft& left) {
            epoch_.leave(left.participant);
            counted_.leave(left.participant);
          },
          [&](const EpochBegun& begun) { counted_.begin(begun.trainer, begun.number, begun.epoch); },
      },
      event);
}

std::vector<ClientId> BarrierService::go_on() {
  const std::lock_guard lock(mutex_);
  trainer_registry_.all_leave_for_now();
  std::vector<ClientId> away;
  for (std::uint32_t trainer = 0; trainer < trainer_registry_.trainers(); ++trainer) {
    const std::uint64_t incarnation = trainer_registry_.incarnation(trainer);
    if (trainer_registry_.is_away(trainer, incarnation, 0)) away.push_back({trainer, incarnation});
  }
  return away;
}

bool BarrierService::are_all_done() const {
  const std::lock_guard lock(mutex_);
  return trainer_registry_.are_all_done();
}

}  // namespace fleetrun::ps
