// Changes of tables: each goes through the write barrier once (ps/durable/write_barrier.h), and is in the log
// before it is applied. In sync mode a push waits for the step that it is part of, and enters with all of it.
#include <memory>
#include <utility>

#include "ps/server/server_state.h"
#include "ps/table/table_set.h"

namespace fleetrun::ps {

void Server::State::change(const wire::Header& header, Reader& body, Respond& respond) {
  const ChangeId id{{header.trainer, header.incarnation}, header.sequence};
  const bool waits =
      header.method == wire::Method::push && options.mode == Mode::sync && header.thread != wire::kNoStep;
  const auto answer =
      write_barrier.claim(id, !waits, [this, header, body, respond] { handle(header, body, respond, {}); });
  if (answer == WriteBarrier::Answer::later) {
    respond = nullptr;
    return;
  }
  // Where it was applied before, what it did then is not known any more.
  auto reply = std::make_shared<Message>();
  if (answer == WriteBarrier::Answer::go_on) {
    if (waits) return push_in_step(header, body, respond, id);
    *reply = make_change(header, body, id);
  }
  when_safe([respond = std::exchange(respond, nullptr), reply] { respond(std::move(*reply)); });
}

// The threads whose steps a push has.
static std::vector<std::uint32_t> threads_of(const wire::Header& header, const wire::PushRequest* push) {
  if (header.method != wire::Method::push || header.thread == wire::kNoStep) return {};
  return push->threads.empty() ? std::vector{header.thread} : push->threads;
}

// A change that is inside the write barrier: it leaves in any case.
Message Server::State::make_change(const wire::Header& header, Reader body, const ChangeId& id) {
  Outcome outcome;
  try {
    const Reader whole = body;
    std::unique_ptr<wire::PushRequest> push;
    try {
      if (has_rows(header.method)) push = read_checked_push(body);
    } catch (const Error& error) {
      outcome = error;
    }
    if (const Error* refusal = std::get_if<Error>(&outcome)) {
      keep_refusal(id, *refusal);
    } else {
      // What is refused once it is kept is refused again when the log tells it again.
      outcome = apply_counted(header, whole, push.get(), [&] { keep_change(header, whole); });
    }
  } catch (...) {
    write_barrier.left({id});
    throw;
  }
  if (const Error* refusal = std::get_if<Error>(&outcome)) {
    write_barrier.refused({id}, *refusal);
    throw Error(*refusal);
  }
  write_barrier.applied({id});
  return std::move(std::get<Message>(outcome));
}

// Calls `keep`, applies the change, and counts the steps that it has.
Outcome Server::State::apply_counted(const wire::Header& header, Reader body, const wire::PushRequest* push,
                                     const std::function<void()>& keep) {
  const std::vector<std::uint32_t> threads = threads_of(header, push);
  barrier_service.count_push({header.trainer, header.incarnation}, threads, keep);
  Outcome outcome = apply_checked(header, body, push);
  if (std::holds_alternative<Error>(outcome)) barrier_service.discount_push(header.trainer, threads);
  return outcome;
}

// `push`: of a push or assign, nullptr for other changes. The answer, or why nothing was changed.
Outcome Server::State::apply_checked(const wire::Header& header, Reader body, const wire::PushRequest* push) {
  try {
    if (header.method == wire::Method::shrink) return shrink(body);
    if (push != nullptr) {
      const bool is_push = header.method == wire::Method::push;
      is_push ? current()->apply(*push) : current()->assign(*push);
      record_touched(header, *push);
      if (is_push) note_push(header, *push);
    } else {
      set_dense(body);
    }
    return Message();
  } catch (const Error& error) {
    return error;
  }
}

void Server::State::push_in_step(const wire::Header& header, Reader body, Respond& respond,
                                 const ChangeId& id) {
  try {
    const Reader whole = body;
    auto request = read_checked_push(body);
    // A copy: when the push is refused, handle() answers.
    Respond answer = [this, id, respond](Outcome outcome) {
      if (std::holds_alternative<Error>(outcome)) write_barrier.dropped(id);
      respond(std::move(outcome));
    };
    barrier_service.push({{header.trainer, header.thread}, std::move(request), std::move(answer), id, whole});
    respond = nullptr;
  } catch (const Error& error) {
    write_barrier.note_refusal(id, error);
    write_barrier.dropped(id);
    keep_refusal(id, error);
    throw;
  }
}

// What the trainer will push: it changes nothing, and is neither in the log nor numbered.
void Server::State::measure(const wire::Header& header, Reader& body, Respond& respond) {
  if (options.mode != Mode::sync) throw Error(ErrorKind::config, "a step is measured in sync mode only");
  const Reader whole = body;
  auto request = std::make_unique<wire::PushRequest>(wire::read_push(body));
  current()->check(*request);
  const ChangeId id{{header.trainer, header.incarnation}, header.sequence};
  // A copy: when it is refused, handle() answers.
  barrier_service.measure({{header.trainer, header.thread}, std::move(request), respond, id, whole});
  respond = nullptr;
}

Message Server::State::measure_step(const Requests& step) const {
  const std::vector<float> squares = mean_squares(step, *current());
  Message reply(squares.size() * sizeof(float));
  Writer(reply).array(std::span<const float>(squares));
  return reply;
}

void Server::State::apply_step(const std::vector<Contribution>& step) {
  std::vector<ChangeId> ids;
  for (const Contribution& contribution : step) ids.push_back(contribution.change);
  write_barrier.enter(ids);
  try {
    keep_step(step);
    barrier_service.count(step);
    apply_averaged(step, *current());
  } catch (const Error& error) {
    write_barrier.refused(ids, error);
    throw;
  } catch (...) {
    write_barrier.left(ids);
    throw;
  }
  write_barrier.applied(ids);
}

}  // namespace fleetrun::ps
