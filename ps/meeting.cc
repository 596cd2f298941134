#include "ps/meeting.h"

#include <algorithm>
#include <utility>

namespace fleetrun::ps {
namespace {

// The sum over all trainers in their order, or what disagrees. `may_differ`: who counts fewer trainers than others,
// because it has not heard of the newest world, brings fewer values; what it lacks is 0.
Outcome sum(const Gathering::Round& round, bool may_differ) {
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

// A call that is answered with nobody to hear it, or with the reason.
std::function<void()> answer_with(Respond respond, const Error& error) {
  return [respond = std::move(respond), error] { respond(separate_copy(error)); };
}

}  // namespace

Meeting::Meeting(std::string server, std::uint32_t trainers, Hooks hooks, std::uint64_t epoch)
    : server_(std::move(server)), hooks_(std::move(hooks)), roster_(server_, trainers, epoch) {}

bool Meeting::hello(const Newcomer& newcomer) {
  std::unique_lock lock(mutex_);
  const bool is_late = roster_.hello(newcomer);
  if (!is_late) return false;
  // Whoever had the rank before it has no part in anything any more.
  Answers answers;
  drop(newcomer.trainer,
       Error(ErrorKind::network, "another trainer " + std::to_string(newcomer.trainer) + " came"), answers);
  settle(lock, std::move(answers));
  return true;
}

void Meeting::require(std::uint32_t trainer, std::uint64_t incarnation, std::uint64_t epoch) const {
  const std::lock_guard lock(mutex_);
  roster_.require(trainer, incarnation, epoch);
}

bool Meeting::is_stale(std::uint32_t trainer, std::uint64_t epoch) const {
  const std::lock_guard lock(mutex_);
  return roster_.is_stale(trainer, epoch);
}

bool Meeting::is_in_place() const {
  const std::lock_guard lock(mutex_);
  return roster_.is_in_place();
}

std::vector<std::uint32_t> Meeting::update(const Attendance& attendance) {
  std::unique_lock lock(mutex_);
  const bool were_done = roster_.are_all_done();
  const std::uint64_t before = roster_.epoch();
  Answers answers;
  const std::vector<std::uint32_t> gone = roster_.update(attendance);
  for (const std::uint32_t trainer : gone) {
    drop(trainer, Error(ErrorKind::config, roster_.stale_text(trainer, before)), answers);
  }
  if (!were_done && roster_.are_all_done()) answers.push_back(hooks_.all_done);
  settle(lock, std::move(answers));
  return gone;
}

void Meeting::drop(std::uint32_t trainer, const Error& error, Answers& answers) {
  std::vector<Respond> waiting = pass_.leave_all(trainer);
  for (Gathering& gathering : gatherings_) {
    for (Respond& respond : gathering.drop(trainer)) waiting.push_back(std::move(respond));
  }
  if (auto attended = attending_.extract(trainer); !attended.empty())
    waiting.push_back(std::move(attended.mapped()));
  for (Respond& respond : waiting) answers.push_back(answer_with(std::move(respond), error));
}

bool Meeting::is_here(std::uint32_t trainer) const {
  const std::lock_guard lock(mutex_);
  return roster_.is_here(trainer);
}

void Meeting::attend(std::uint32_t trainer, Respond respond) {
  Respond before;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_ && roster_.is_here(trainer)) std::swap(attending_[trainer], respond);
    before = std::move(respond);
  }
  // What is left is an earlier attend of the same trainer, or this one after the server was closed.
  if (before) before(Error(ErrorKind::network, server_ + " no longer attends to this connection"));
}

void Meeting::goodbye(std::uint32_t trainer) {
  std::unique_lock lock(mutex_);
  roster_.goodbye(trainer);
  Answers answers;
  const Error error(ErrorKind::config,
                    "trainer " + std::to_string(trainer) + " has said goodbye to " + server_);
  for (Respond& respond : pass_.leave_all(trainer)) answers.push_back(answer_with(std::move(respond), error));
  if (auto attended = attending_.extract(trainer); !attended.empty()) {
    answers.push_back([respond = std::move(attended.mapped())] { respond(Message()); });
  }
  if (roster_.are_all_done()) answers.push_back(hooks_.all_done);
  settle(lock, std::move(answers));
}

void Meeting::lost(std::uint32_t trainer, std::uint64_t incarnation) {
  std::unique_lock lock(mutex_);
  if (!roster_.lose(trainer, incarnation)) return;
  Answers answers;
  const Error error = gone_text(trainer);
  if (auto attended = attending_.extract(trainer); !attended.empty())
    answers.push_back(answer_with(std::move(attended.mapped()), error));
  if (!roster_.is_in_place()) fail_waiting(error, answers);
  settle(lock, std::move(answers));
}

void Meeting::gather(Kind kind, std::uint32_t trainer, std::vector<double> values, Respond respond) {
  std::unique_lock lock(mutex_);
  if (const auto error = obstacle()) {
    lock.unlock();
    return respond(*error);
  }
  if (kind == Kind::begin_pass && !roster_.has_joined(trainer) && pass_.is_under_way()) {
    // The others are in the middle of the pass: this one takes part from the next step on.
    roster_.join(trainer);
    pass_.join(trainer, static_cast<std::uint32_t>(values.at(0)));
    lock.unlock();
    return respond(Message());
  }
  gatherings_[static_cast<std::size_t>(kind)].arrive(trainer, {std::move(values), std::move(respond)});
  settle(lock);
}

void Meeting::push(Contribution contribution) {
  std::unique_lock lock(mutex_);
  if (const auto error = obstacle()) {
    lock.unlock();
    return contribution.respond(*error);
  }
  pass_.push(std::move(contribution));
  settle(lock);
}

void Meeting::leave_pass(const Participant& participant) {
  std::unique_lock lock(mutex_);
  pass_.leave(participant);
  settle(lock);
}

void Meeting::close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  Answers answers;
  const Error error = *obstacle();
  fail_waiting(error, answers);
  for (auto& [trainer, respond] : std::exchange(attending_, {}))
    answers.push_back(answer_with(std::move(respond), error));
  settle(lock, std::move(answers));
}

std::optional<Error> Meeting::obstacle() const {
  if (closed_) return Error(ErrorKind::network, server_ + " is stopping");
  if (const auto lost = roster_.lost(); lost && !roster_.is_in_place()) return gone_text(*lost);
  return std::nullopt;
}

Error Meeting::gone_text(std::uint32_t trainer) const {
  return Error(ErrorKind::network,
               "trainer " + std::to_string(trainer) + " is gone: its connection to " + server_ +
                   " ended without a goodbye",
               "its own log says why");
}

void Meeting::fail_waiting(const Error& error, Answers& answers) {
  std::vector<Respond> waiting = pass_.give_up();
  for (Gathering& gathering : gatherings_) {
    for (Respond& respond : gathering.give_up()) waiting.push_back(std::move(respond));
  }
  for (Respond& respond : waiting) answers.push_back(answer_with(std::move(respond), error));
}

void Meeting::complete_gatherings(Answers& answers) {
  for (std::size_t i = 0; i < gatherings_.size(); ++i) {
    while (auto round = gatherings_[i].take_complete(roster_)) {
      complete_round(static_cast<Kind>(i), std::move(*round), answers);
    }
  }
}

void Meeting::complete_round(Kind kind, Gathering::Round round, Answers& answers) {
  for (const auto& [trainer, entry] : round) roster_.join(trainer);
  auto outcome = std::make_shared<Outcome>(Message());
  if (kind == Kind::all_reduce) *outcome = sum(round, roster_.is_in_place());
  if (kind == Kind::begin_pass) {
    std::map<std::uint32_t, std::uint32_t> threads;
    for (const auto& [trainer, entry] : round) {
      // A trainer that said goodbye after it began takes no part any more.
      if (!roster_.is_done(trainer)) threads[trainer] = static_cast<std::uint32_t>(entry.values.at(0));
    }
    pass_.begin(threads);
  }
  for (auto& [trainer, entry] : round) {
    const std::size_t values = kind == Kind::all_reduce ? entry.values.size() : 0;
    answers.push_back(
        [respond = std::move(entry.respond), outcome, values] { respond(copy_of(*outcome, values)); });
  }
}

void Meeting::apply_complete_steps(std::unique_lock<std::mutex>& lock) {
  for (;;) {
    std::vector<Contribution> step = pass_.take_complete();
    if (step.empty()) return;
    lock.unlock();
    std::optional<Error> failure;
    try {
      hooks_.apply_step(step);
    } catch (const Error& error) {
      failure = error;
    } catch (const std::exception& error) {
      failure = Error(ErrorKind::host, server_ + " could not apply a step: " + error.what());
    }
    lock.lock();
    pass_.finish(step);
    lock.unlock();
    for (const Contribution& contribution : step) {
      contribution.respond(failure ? Outcome(separate_copy(*failure)) : Outcome(Message()));
    }
    lock.lock();
  }
}

void Meeting::settle(std::unique_lock<std::mutex>& lock, Answers answers) {
  complete_gatherings(answers);
  apply_complete_steps(lock);
  lock.unlock();
  for (const auto& answer : answers) answer();
}

}  // namespace fleetrun::ps
