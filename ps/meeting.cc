#include "ps/meeting.h"

#include <utility>

namespace fleetrun::ps {
namespace {

// The sum over all trainers in their order, or what disagrees.
Outcome sum(const Gathering::Round& round) {
  const auto& [first_trainer, first] = *round.begin();
  std::vector<double> total(first.values.size(), 0.0);
  for (const auto& [trainer, entry] : round) {
    if (entry.values.size() != total.size()) {
      return Error(ErrorKind::config, "trainer " + std::to_string(first_trainer) + " brings " +
                                          std::to_string(total.size()) +
                                          " values to all_reduce_sum, trainer " + std::to_string(trainer) +
                                          " brings " + std::to_string(entry.values.size()));
    }
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += entry.values[i];
  }
  Message out(total.size() * sizeof(double));
  Writer(out).array(std::span<const double>(total));
  return out;
}

Message copy_of(const Message& message) {
  Message out(message.size());
  Writer(out).array(message.bytes());
  return out;
}

Outcome copy_of(const Outcome& outcome) {
  if (const Error* error = std::get_if<Error>(&outcome)) return separate_copy(*error);
  return copy_of(std::get<Message>(outcome));
}

}  // namespace

Meeting::Meeting(std::string server, std::uint32_t trainers, Hooks hooks)
    : server_(std::move(server)), hooks_(std::move(hooks)), roster_(server_, trainers) {}

void Meeting::hello(std::uint32_t trainer, std::uint64_t incarnation) {
  const std::lock_guard lock(mutex_);
  roster_.hello(trainer, incarnation);
}

void Meeting::require(std::uint32_t trainer, std::uint64_t incarnation) const {
  const std::lock_guard lock(mutex_);
  roster_.require(trainer, incarnation);
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
  pass_.leave_all(trainer);
  Answers answers;
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
  const Error error = *obstacle();
  if (auto attended = attending_.extract(trainer); !attended.empty()) {
    answers.push_back([respond = std::move(attended.mapped()), error] { respond(separate_copy(error)); });
  }
  fail_waiting(error, answers);
  settle(lock, std::move(answers));
}

void Meeting::gather(Kind kind, std::uint32_t trainer, std::vector<double> values, Respond respond) {
  std::unique_lock lock(mutex_);
  if (const auto error = obstacle()) {
    lock.unlock();
    return respond(*error);
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
  for (auto& [trainer, respond] : std::exchange(attending_, {})) {
    answers.push_back([respond = std::move(respond), error] { respond(separate_copy(error)); });
  }
  settle(lock, std::move(answers));
}

std::optional<Error> Meeting::obstacle() const {
  if (closed_) return Error(ErrorKind::network, server_ + " is stopping");
  if (const auto lost = roster_.lost()) {
    return Error(ErrorKind::network,
                 "trainer " + std::to_string(*lost) + " is gone: its connection to " + server_ +
                     " ended without a goodbye",
                 "its own log says why");
  }
  return std::nullopt;
}

void Meeting::fail_waiting(const Error& error, Answers& answers) {
  std::vector<Respond> waiting = pass_.give_up();
  for (Gathering& gathering : gatherings_) {
    for (Respond& respond : gathering.give_up()) waiting.push_back(std::move(respond));
  }
  for (Respond& respond : waiting) {
    answers.push_back([respond = std::move(respond), error] { respond(separate_copy(error)); });
  }
}

void Meeting::complete_gatherings(Answers& answers) {
  for (std::size_t i = 0; i < gatherings_.size(); ++i) {
    while (auto round = gatherings_[i].take_complete(roster_)) {
      complete_round(static_cast<Kind>(i), std::move(*round), answers);
    }
  }
}

void Meeting::complete_round(Kind kind, Gathering::Round round, Answers& answers) {
  auto outcome = std::make_shared<Outcome>(Message());
  if (kind == Kind::all_reduce) *outcome = sum(round);
  if (kind == Kind::begin_pass) {
    std::map<std::uint32_t, std::uint32_t> threads;
    for (const auto& [trainer, entry] : round) {
      // A trainer that said goodbye after it began takes no part any more.
      if (!roster_.is_done(trainer)) threads[trainer] = static_cast<std::uint32_t>(entry.values.at(0));
    }
    pass_.begin(threads);
  }
  for (auto& [trainer, entry] : round) {
    answers.push_back([respond = std::move(entry.respond), outcome] { respond(copy_of(*outcome)); });
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
