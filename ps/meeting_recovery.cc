// A meeting written down, and made again from that and from what happened afterwards.
#include <utility>

#include "ps/meeting.h"

namespace fleetrun::ps {
namespace {

template <class... Calls>
struct Overloaded : Calls... {
  using Calls::operator()...;
};

// u32 0 and the bytes, or u32 1 and the error: its kind, what and hint.
void write_outcome(Bytes& out, const Outcome& outcome) {
  const Error* error = std::get_if<Error>(&outcome);
  out.value(std::uint32_t{error != nullptr ? 1u : 0u});
  if (error != nullptr) {
    out.value(static_cast<std::uint32_t>(error->kind()));
    out.text(error->what());
    out.text(error->hint());
    return;
  }
  const auto bytes = std::get<Message>(outcome).bytes();
  out.value(std::uint64_t{bytes.size()});
  out.array(bytes);
}

Outcome read_outcome(Reader& in) {
  if (in.value<std::uint32_t>() != 0) {
    const auto kind = static_cast<ErrorKind>(in.value<std::uint32_t>());
    const std::string what = wire::read_text(in);
    return Error(kind, what, wire::read_text(in));
  }
  const auto size = in.value<std::uint64_t>();
  Message copy;
  const auto bytes = in.array<std::byte>(size, copy);
  Message out(bytes.size());
  Writer(out).array(bytes);
  return out;
}

}  // namespace

void Meeting::describe(const std::function<void(const Bytes&)>& with) const {
  const std::lock_guard lock(mutex_);
  Bytes out;
  roster_.write(out);
  for (const auto& completed : completed_) {
    out.value(static_cast<std::uint32_t>(completed.size()));
    for (const auto& [trainer, last] : completed) {
      out.value(trainer);
      out.value(last.number);
      out.value(std::uint64_t{last.values});
      write_outcome(out, *last.outcome);
    }
  }
  const std::vector<Participant> participants = pass_.participants();
  out.value(static_cast<std::uint32_t>(participants.size()));
  for (const Participant& participant : participants) {
    out.value(participant.trainer);
    out.value(participant.thread);
  }
  with(out);
}

void Meeting::restore(Reader& in) {
  const std::lock_guard lock(mutex_);
  roster_.read(in);
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
  const auto participants = in.value<std::uint32_t>();
  for (std::uint32_t i = 0; i < participants; ++i) {
    const auto trainer = in.value<std::uint32_t>();
    pass_.join({trainer, in.value<std::uint32_t>()});
  }
}

void Meeting::replay(const MeetingEvent& event) {
  const std::lock_guard lock(mutex_);
  Answers nobody_waits;
  std::visit(Overloaded{
                 [&](const TrainerCame& came) {
                   const std::uint64_t before = roster_.incarnation(came.newcomer.trainer);
                   // It was taken in then: whoever had the rank had gone, of which the log says nothing.
                   if (before != came.newcomer.incarnation)
                     roster_.leave_for_now(came.newcomer.trainer, before, 0);
                   roster_.hello(came.newcomer);
                   if (before != came.newcomer.incarnation)
                     newcomer_replaces(came.newcomer.trainer, nobody_waits);
                 },
                 [&](const TrainerDone& done) {
                   roster_.goodbye(done.trainer);
                   pass_.leave_all(done.trainer);
                 },
                 [&](const TrainerLost& lost) {
                   roster_.lose(lost.trainer, lost.incarnation);
                   give_up_on(lost.trainer, nobody_waits);
                 },
                 [&](const WorldChanged& world) {
                   for (const std::uint32_t trainer : roster_.update(world.attendance))
                     pass_.leave_all(trainer);
                 },
                 [&](const RoundDone& done) {
                   Gathering::Round round;
                   for (const RoundDone::Part& part : done.parts)
                     round[part.trainer] = {part.values, [](Outcome) {}, part.number};
                   complete_round(static_cast<Kind>(done.kind), std::move(round), nobody_waits);
                 },
                 [&](const PassJoined& joined) { join_pass(joined.trainer, joined.threads, joined.number); },
                 [&](const PassLeft& left) { pass_.leave(left.participant); },
             },
             event);
}

std::vector<ClientId> Meeting::go_on() {
  const std::lock_guard lock(mutex_);
  roster_.all_leave_for_now();
  std::vector<ClientId> away;
  for (std::uint32_t trainer = 0; trainer < roster_.trainers(); ++trainer) {
    const std::uint64_t incarnation = roster_.incarnation(trainer);
    if (roster_.is_away(trainer, incarnation, 0)) away.push_back({trainer, incarnation});
  }
  return away;
}

bool Meeting::are_all_done() const {
  const std::lock_guard lock(mutex_);
  return roster_.are_all_done();
}

}  // namespace fleetrun::ps
