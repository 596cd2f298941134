#include "ps/sync/barrier_service.h"

#include <algorithm>
#include <utility>

#include "runtime/base/recovery_words.h"

namespace fleetrun::ps {
namespace {

// The sum over all trainers in their order, or what disagrees. `may_differ`: who counts fewer trainers than
// others, because it has not heard of the newest world, brings fewer values; what it lacks is 0.
Outcome sum(const BarrierRounds::Round& round, bool may_differ) {
  const auto& [first_trainer, first] = *round.begin();
  std::vector<double> total(first.values.size(), 0.0);
  for (const auto& [trainer, entry] : round) {
    if (may_differ) {
      total.resize(std::max(total.size(), entry.values.size()));
    } else if (entry.values.size() != total.size()) {
      return Error(ErrorKind::config, "trainer " + std::to_string(first_trainer) + " brings " +
                                          std::to_string(total.size()) +
                                          " values to all_reduce_sum, trainer " + std::to_string(trainer) +
                                          " brings " + std::to_string(entry.values.size()));
    }
    for (std::size_t i = 0; i < entry.values.size(); ++i) total[i] += entry.values[i];
  }
  Message out(total.size() * sizeof(double));
  Writer(out).array(std::span<const double>(total));
  return out;
}

// For who brought `values`: as many as it brought.
Outcome copy_of(const Outcome& outcome, std::size_t values) {
  if (const Error* error = std::get_if<Error>(&outcome)) return separate_copy(*error);
  const auto bytes = std::get<Message>(outcome).bytes();
  Message out(std::min(bytes.size(), values * sizeof(double)));
  Writer(out).array(bytes.first(out.size()));
  return out;
}

// 32 bits at a time: a double holds them exactly.
constexpr std::size_t kEpochValues = 7;

wire::BeginEpoch epoch_of(std::span<const double> values) {
  const auto whole = [&](std::size_t at) {
    return (static_cast<std::uint64_t>(values[at]) << 32) + static_cast<std::uint64_t>(values[at + 1]);
  };
  wire::BeginEpoch epoch{static_cast<std::uint32_t>(values.front())};
  if (values.size() == kEpochValues) epoch.mark = {whole(1), whole(3), whole(5)};
  return epoch;
}

Error another_came(std::uint32_t trainer) {
  return Error(ErrorKind::network, "another trainer " + std::to_string(trainer) + " came");
}

// A call that is answered with nobody to hear it, or with the reason.
std::function<void()> answer_with(Respond respond, const Error& error) {
  return [respond = std::move(respond), error] { respond(separate_copy(error)); };
}

}  // namespace

std::vector<double> BarrierService::values_of(const wire::BeginEpoch& epoch) {
  std::vector<double> values{static_cast<double>(epoch.threads)};
  for (const std::uint64_t part : {epoch.mark.data, epoch.mark.barriers, epoch.mark.sums}) {
    values.push_back(static_cast<double>(part >> 32));
    values.push_back(static_cast<double>(part & 0xffffffffu));
  }
  return values;
}

BarrierService::BarrierService(std::string server, std::uint32_t trainers, Hooks hooks,
                               std::uint64_t generation)
    : server_(std::move(server)),
      hooks_(std::move(hooks)),
      trainer_registry_(server_, trainers, generation) {}

bool BarrierService::hello(const Newcomer& newcomer) {
  std::unique_lock lock(mutex_);
  const std::uint64_t before = trainer_registry_.incarnation(newcomer.trainer);
  const bool succeeds = trainer_registry_.succeeds(newcomer);
  const bool is_late = trainer_registry_.hello(newcomer);
  keep(TrainerCame{newcomer});
  Answers answers;
  come(newcomer, succeeds, before, answers);
  settle(lock, std::move(answers));
  return is_late;
}

bool BarrierService::is_forgotten(const Newcomer& newcomer, bool after_goodbye) const {
  const std::lock_guard lock(mutex_);
  return trainer_registry_.begins_again(newcomer, after_goodbye) &&
         !(trainer_registry_.succeeds(newcomer) && goes_on(newcomer.trainer));
}

// Whoever had the rank before it has no part in anything any more;
// what it has done is the newcomer's where that goes on.
void BarrierService::come(const Newcomer& newcomer, bool succeeds, std::uint64_t before, Answers& answers) {
  if (before == newcomer.incarnation) return;
  const std::uint32_t trainer = newcomer.trainer;
  const Error error = another_came(trainer);
  if (!succeeds || !goes_on(trainer)) {
    forget(trainer);
    if ((newcomer.arrival & wire::kCountsEpochs) != 0) counted_.expect(trainer);
    return drop(trainer, error, answers);
  }
  trainer_registry_.set_continues(trainer, true);
  std::vector<Respond> waiting = epoch_.take_over(trainer);
  for (Respond& respond : drop_waiting(trainer)) waiting.push_back(std::move(respond));
  for (Respond& respond : waiting) answers.push_back(answer_with(std::move(respond), error));
}

void BarrierService::forget(std::uint32_t trainer) {
  for (auto& completed : completed_) completed.erase(trainer);
  sums_.forget(trainer);
  counted_.forget(trainer);
  trainer_registry_.set_continues(trainer, false);
}

bool BarrierService::goes_on(std::uint32_t trainer) const {
  return hooks_.goes_on == GoesOn::yes ||
         (hooks_.goes_on == GoesOn::where_counted && counted_.knows(trainer));
}

BarrierService::Rounds BarrierService::rounds(std::uint32_t trainer) const {
  const std::lock_guard lock(mutex_);
  Rounds out{};
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if (const auto found = completed_[kind].find(trainer); found != completed_[kind].end())
      out[kind] = found->second.number;
  }
  if (counted_.knows(trainer))
    out[static_cast<std::size_t>(Kind::begin_epoch)] = counted_.marks(trainer).size();
  return out;
}

std::vector<std::uint64_t> BarrierService::steps(std::uint32_t trainer) const {
  const std::lock_guard lock(mutex_);
  // In sync mode the steps that are being applied are the trainer's, too.
  const bool are_counted = hooks_.goes_on == GoesOn::where_counted && counted_.knows(trainer);
  return are_counted ? counted_.steps(trainer) : epoch_.steps(trainer);
}

bool BarrierService::is_cut(std::uint32_t trainer) const {
  const std::lock_guard lock(mutex_);
  return counted_.knows(trainer) && counted_.is_cut(trainer);
}

std::vector<wire::EpochMark> BarrierService::marks(std::uint32_t trainer) const {
  const std::lock_guard lock(mutex_);
  return counted_.knows(trainer) ? counted_.marks(trainer) : std::vector<wire::EpochMark>();
}

void BarrierService::when_applied(std::uint32_t trainer, std::function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    if (epoch_.is_applying(trainer)) {
      when_applied_.push_back(std::move(then));
      return;
    }
  }
  then();
}

bool BarrierService::is_done(std::uint32_t trainer, std::uint64_t incarnation) const {
  const std::lock_guard lock(mutex_);
  return trainer < trainer_registry_.trainers() && trainer_registry_.is_done(trainer) &&
         trainer_registry_.incarnation(trainer) == incarnation;
}

void BarrierService::require(std::uint32_t trainer, std::uint64_t incarnation,
                             std::uint64_t generation) const {
  const std::lock_guard lock(mutex_);
  trainer_registry_.require(trainer, incarnation, generation);
}

bool BarrierService::is_stale(std::uint32_t trainer, std::uint64_t generation) const {
  const std::lock_guard lock(mutex_);
  return trainer_registry_.is_stale(trainer, generation);
}

bool BarrierService::is_in_place() const {
  const std::lock_guard lock(mutex_);
  return trainer_registry_.is_in_place();
}

std::vector<std::uint32_t> BarrierService::update(const MembershipUpdate& membership_update) {
  std::unique_lock lock(mutex_);
  const bool were_done = trainer_registry_.are_all_done();
  const std::uint64_t before = trainer_registry_.generation();
  Answers answers;
  const std::vector<std::uint32_t> gone = trainer_registry_.update(membership_update);
  keep(WorldChanged{membership_update});
  for (const std::uint32_t trainer : gone) {
    drop(trainer, Error(ErrorKind::config, trainer_registry_.stale_text(trainer, before)), answers);
  }
  if (!were_done && trainer_registry_.are_all_done()) answers.push_back(hooks_.all_done);
  settle(lock, std::move(answers));
  return gone;
}

void BarrierService::drop(std::uint32_t trainer, const Error& error, Answers& answers) {
  std::vector<Respond> waiting = epoch_.leave_all(trainer);
  for (Respond& respond : drop_waiting(trainer)) waiting.push_back(std::move(respond));
  for (Respond& respond : waiting) answers.push_back(answer_with(std::move(respond), error));
}

// What a trainer waits for apart from a step.
std::vector<Respond> BarrierService::drop_waiting(std::uint32_t trainer) {
  std::vector<Respond> waiting;
  for (BarrierRounds& barrier_rounds : barrier_rounds_) {
    for (Respond& respond : barrier_rounds.drop(trainer)) waiting.push_back(std::move(respond));
  }
  if (auto attended = attending_.extract(trainer); !attended.empty())
    waiting.push_back(std::move(attended.mapped()));
  return waiting;
}

bool BarrierService::is_here(std::uint32_t trainer) const {
  const std::lock_guard lock(mutex_);
  return trainer_registry_.is_here(trainer);
}

void BarrierService::attend(std::uint32_t trainer, Respond respond) {
  Respond before;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_ && trainer_registry_.is_here(trainer)) {
      trainer_registry_.attend(trainer);
      std::swap(attending_[trainer], respond);
    }
    before = std::move(respond);
  }
  // What is left is an earlier attend of the same trainer, or this one after the server was closed.
  if (before) before(Error(ErrorKind::network, server_ + " no longer attends to this connection"));
}

void BarrierService::goodbye(std::uint32_t trainer) {
  std::unique_lock lock(mutex_);
  trainer_registry_.goodbye(trainer);
  keep(TrainerDone{trainer});
  Answers answers;
  const Error error(ErrorKind::config,
                    "trainer " + std::to_string(trainer) + " has said goodbye to " + server_);
  for (Respond& respond : epoch_.leave_all(trainer))
    answers.push_back(answer_with(std::move(respond), error));
  if (auto attended = attending_.extract(trainer); !attended.empty()) {
    answers.push_back([respond = std::move(attended.mapped())] { respond(Message()); });
  }
  if (trainer_registry_.are_all_done()) answers.push_back(hooks_.all_done);
  settle(lock, std::move(answers));
}

void BarrierService::lost(std::uint32_t trainer, std::uint64_t incarnation) {
  std::unique_lock lock(mutex_);
  if (!trainer_registry_.lose(trainer, incarnation)) return;
  keep(TrainerLost{trainer, incarnation});
  Answers answers;
  give_up_on(trainer, answers);
  settle(lock, std::move(answers));
}

void BarrierService::give_up_on(std::uint32_t trainer, Answers& answers) {
  const Error error = gone_text(trainer);
  if (auto attended = attending_.extract(trainer); !attended.empty())
    answers.push_back(answer_with(std::move(attended.mapped()), error));
  if (trainer_registry_.is_in_place()) return;
  fail_waiting(error, answers);
  epoch_.end();
}

bool BarrierService::leave_for_now(std::uint32_t trainer, std::uint64_t incarnation,
                                   std::uint64_t connection) {
  const std::lock_guard lock(mutex_);
  return trainer_registry_.leave_for_now(trainer, incarnation, connection);
}

bool BarrierService::give_up(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t connection) {
  {
    const std::lock_guard lock(mutex_);
    if (!trainer_registry_.is_away(trainer, incarnation, connection)) return false;
  }
  lost(trainer, incarnation);
  return true;
}

void BarrierService::gather(Kind kind, std::uint32_t trainer, std::vector<double> values, Respond respond,
                            std::uint64_t number) {
  std::unique_lock lock(mutex_);
  auto& completed = completed_[static_cast<std::size_t>(kind)];
  if (const auto last = completed.find(trainer); number != 0 && last != completed.end()) {
    const Completed before = last->second;
    if (number <= before.number) {
      Outcome outcome = number == before.number ? copy_of(*before.outcome, before.values)
                                                : earlier_outcome(kind, trainer, number);
      lock.unlock();
      return respond(std::move(outcome));
    }
  }
  if (const auto error = obstacle()) {
    lock.unlock();
    return respond(*error);
  }
  if (kind == Kind::begin_epoch && !trainer_registry_.has_joined(trainer) && epoch_.is_under_way()) {
    const std::uint32_t threads = epoch_of(values).threads;
    keep(EpochJoined{trainer, threads, number});
    join_epoch(trainer, threads, number);
    lock.unlock();
    return give({[respond = std::move(respond)] { respond(Message()); }});
  }
  barrier_rounds_[static_cast<std::size_t>(kind)].arrive(trainer,
                                                         {std::move(values), std::move(respond), number});
  settle(lock);
}

// Of a round that was complete before the trainer's last one.
Outcome BarrierService::earlier_outcome(Kind kind, std::uint32_t trainer, std::uint64_t number) const {
  if (kind == Kind::all_reduce && hooks_.goes_on != GoesOn::no) {
    if (const SumHistory::Sum* sum = sums_.find(trainer, number))
      return copy_of(*sum->outcome, sum->parts.at(trainer).values);
    return Error(
        ErrorKind::data,
        "trainer " + std::to_string(trainer) + std::string(kCannotGoOnAlone) + "it asks for its sum " +
            std::to_string(number) + ", which " + server_ + " no longer keeps",
        "with --restart=trainer=group all trainers are started again together from the first failure on");
  }
  return Error(ErrorKind::data, "this round was over before the trainer began the last one");
}

// The others are in the middle of the epoch: this one takes part from the next step on.
void BarrierService::join_epoch(std::uint32_t trainer, std::uint32_t threads, std::uint64_t number) {
  trainer_registry_.join(trainer);
  epoch_.join(trainer, threads);
  counted_.begin(trainer, number, {threads});
  completed_[static_cast<std::size_t>(Kind::begin_epoch)][trainer] = {
      number, std::make_shared<Outcome>(Message()), 0};
}

std::optional<Error> BarrierService::obstacle_of(const Contribution& contribution) const {
  if (auto error = obstacle()) return error;
  // It asked before another process came for it.
  const ClientId& from = contribution.change.client;
  if (contribution.change.number != 0 && !is_current(from)) return another_came(from.trainer);
  return std::nullopt;
}

void BarrierService::push(Contribution contribution) {
  std::unique_lock lock(mutex_);
  if (const auto error = obstacle_of(contribution)) {
    lock.unlock();
    return contribution.respond(*error);
  }
  epoch_.push(std::move(contribution));
  settle(lock);
}

void BarrierService::measure(Contribution contribution) {
  std::unique_lock lock(mutex_);
  if (const auto error = obstacle_of(contribution)) {
    lock.unlock();
    return contribution.respond(*error);
  }
  const Error again(ErrorKind::network, "its trainer has asked once more");
  Answers answers;
  for (Respond& respond : epoch_.measure(std::move(contribution)))
    answers.push_back(answer_with(std::move(respond), again));
  settle(lock, std::move(answers));
}

void BarrierService::complete_measures(Answers& answers) {
  const std::vector<const wire::PushRequest*> step = epoch_.measured();
  if (step.empty()) return;
  auto outcome = std::make_shared<Outcome>(Message());
  try {
    *outcome = hooks_.measure_step(step);
  } catch (const Error& error) {
    *outcome = separate_copy(error);
  }
  for (Respond& respond : epoch_.take_measuring())
    answers.push_back([respond = std::move(respond), outcome] { respond(separate_copy(*outcome)); });
}

void BarrierService::count(const std::vector<Contribution>& step) {
  std::vector<Participant> participants;
  for (const Contribution& contribution : step) participants.push_back(contribution.from);
  const std::lock_guard lock(mutex_);
  epoch_.count(participants);
}

// False for what asked before another process came for its trainer.
bool BarrierService::is_current(const ClientId& from) const {
  return from.incarnation == trainer_registry_.incarnation(from.trainer);
}

void BarrierService::begin_counted(const ClientId& from, std::uint64_t number,
                                   const wire::BeginEpoch& epoch) {
  const std::lock_guard lock(mutex_);
  if (!is_current(from)) throw another_came(from.trainer);
  keep(EpochBegun{from.trainer, number, epoch});
  counted_.begin(from.trainer, number, epoch);
}

void BarrierService::count_push(const ClientId& from, std::span<const std::uint32_t> threads,
                                const std::function<void()>& keep) {
  std::unique_lock lock(mutex_);
  if (!counted_.knows(from.trainer)) {
    lock.unlock();
    return keep();
  }
  if (!is_current(from)) throw another_came(from.trainer);
  keep();
  counted_.count(from.trainer, threads);
}

void BarrierService::discount_push(std::uint32_t trainer, std::span<const std::uint32_t> threads) {
  const std::lock_guard lock(mutex_);
  counted_.count(trainer, threads, true);
}

void BarrierService::leave_epoch(const Participant& participant, std::uint64_t epoch) {
  std::unique_lock lock(mutex_);
  const auto& begun = completed_[static_cast<std::size_t>(Kind::begin_epoch)];
  const auto last = begun.find(participant.trainer);
  if (epoch != 0 && last != begun.end() && epoch < last->second.number) return;
  if (counted_.is_over(participant.trainer, epoch)) return;
  keep(EpochLeft{participant});
  epoch_.leave(participant);
  counted_.leave(participant);
  settle(lock);
}

void BarrierService::close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  Answers answers;
  const Error error = *obstacle();
  fail_waiting(error, answers);
  for (auto& [trainer, respond] : std::exchange(attending_, {}))
    answers.push_back(answer_with(std::move(respond), error));
  settle(lock, std::move(answers));
}

std::optional<Error> BarrierService::obstacle() const {
  if (closed_) return Error(ErrorKind::network, server_ + " is stopping");
  if (const auto lost = trainer_registry_.lost(); lost && !trainer_registry_.is_in_place())
    return gone_text(*lost);
  return std::nullopt;
}

Error BarrierService::gone_text(std::uint32_t trainer) const {
  return Error(ErrorKind::network,
               "trainer " + std::to_string(trainer) + " is gone: its connection to " + server_ +
                   " ended without a goodbye",
               "its own log says why");
}

void BarrierService::fail_waiting(const Error& error, Answers& answers) {
  std::vector<Respond> waiting = epoch_.drop_waits();
  for (BarrierRounds& barrier_rounds : barrier_rounds_) {
    for (Respond& respond : barrier_rounds.give_up()) waiting.push_back(std::move(respond));
  }
  for (Respond& respond : waiting) answers.push_back(answer_with(std::move(respond), error));
}

void BarrierService::complete_rounds(Answers& answers) {
  for (std::size_t i = 0; i < barrier_rounds_.size(); ++i) {
    while (auto round = barrier_rounds_[i].take_complete(trainer_registry_)) {
      complete_round(static_cast<Kind>(i), std::move(*round), answers);
    }
  }
}

void BarrierService::keep_round(Kind kind, const BarrierRounds::Round& round) const {
  if (!hooks_.keep) return;
  RoundDone done{static_cast<std::uint32_t>(kind), {}};
  for (const auto& [trainer, entry] : round) done.parts.push_back({trainer, entry.number, entry.values});
  keep(done);
}

// Passes over the same data look alike: who leaves some out when it is started again has too few in the end.
void BarrierService::check_nobody_ended_early() const {
  for (std::uint32_t trainer = 0; trainer < trainer_registry_.trainers(); ++trainer) {
    if (!trainer_registry_.continues(trainer) || !trainer_registry_.is_done(trainer)) continue;
    throw Error(ErrorKind::config,
                "trainer " + std::to_string(trainer) + std::string(kCannotGoOnAlone) +
                    "it was started again, and has ended before the last pass of the others",
                "a script that is started again begins with the pass that was under way, or an earlier one; "
                "passes over the same data are counted from the first");
  }
}

void BarrierService::begin_epoch(const BarrierRounds::Round& round) {
  std::map<std::uint32_t, std::uint32_t> threads;
  for (const auto& [trainer, entry] : round) {
    // A trainer that said goodbye after it began takes no part any more.
    if (trainer_registry_.is_done(trainer)) continue;
    const wire::BeginEpoch epoch = epoch_of(entry.values);
    threads[trainer] = epoch.threads;
    counted_.begin(trainer, entry.number, epoch);
  }
  epoch_.begin(threads);
}

void BarrierService::complete_round(Kind kind, BarrierRounds::Round round, Answers& answers) {
  auto outcome = std::make_shared<Outcome>(Message());
  try {
    if (kind == Kind::begin_epoch) check_nobody_ended_early();
    keep_round(kind, round);
    for (const auto& [trainer, entry] : round) trainer_registry_.join(trainer);
    if (kind == Kind::all_reduce) *outcome = sum(round, trainer_registry_.is_in_place());
    if (kind == Kind::begin_epoch) begin_epoch(round);
  } catch (const Error& error) {
    *outcome = separate_copy(error);
  }
  if (kind == Kind::all_reduce && hooks_.goes_on != GoesOn::no) {
    SumHistory::Sum sum{outcome, {}};
    for (const auto& [trainer, entry] : round) sum.parts[trainer] = {entry.number, entry.values.size()};
    sums_.add(std::move(sum));
  }
  for (auto& [trainer, entry] : round) {
    const std::size_t values = kind == Kind::all_reduce ? entry.values.size() : 0;
    if (entry.number != 0)
      completed_[static_cast<std::size_t>(kind)][trainer] = {entry.number, outcome, values};
    answers.push_back(
        [respond = std::move(entry.respond), outcome, values] { respond(copy_of(*outcome, values)); });
  }
}

void BarrierService::apply_complete_steps(std::unique_lock<std::mutex>& lock) {
  for (;;) {
    Answers measures;
    complete_measures(measures);
    std::vector<Contribution> step = epoch_.take_complete();
    if (step.empty() && measures.empty()) return;
    lock.unlock();
    give(measures);
    if (step.empty()) {
      lock.lock();
      continue;
    }
    std::optional<Error> failure;
    try {
      hooks_.apply_step(step);
    } catch (const Error& error) {
      failure = error;
    } catch (const std::exception& error) {
      failure = Error(ErrorKind::host, server_ + " could not apply a step: " + error.what());
    }
    lock.lock();
    epoch_.finish(step);
    Answers answers = std::exchange(when_applied_, {});
    lock.unlock();
    for (const Contribution& contribution : step) {
      answers.push_back([respond = contribution.respond, failure] {
        respond(failure ? Outcome(separate_copy(*failure)) : Outcome(Message()));
      });
    }
    give(answers);
    lock.lock();
  }
}

void BarrierService::settle(std::unique_lock<std::mutex>& lock, Answers answers) {
  complete_rounds(answers);
  apply_complete_steps(lock);
  lock.unlock();
  give(answers);
}

void BarrierService::give(const Answers& answers) const {
  if (answers.empty()) return;
  if (!hooks_.answer) {
    for (const auto& answer : answers) answer();
    return;
  }
  hooks_.answer([answers] {
    for (const auto& answer : answers) answer();
  });
}

}  // namespace fleetrun::ps
