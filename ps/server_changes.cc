// Changes of tables: each goes through the gate once (ps/durable/gate.h). In sync mode a push waits for the step that it
// is part of, and enters with all of it.
#include <utility>

#include "ps/server_state.h"

namespace fleetrun::ps {

void Server::State::change(const wire::Header& header, Reader& body, Respond& respond) {
  const ChangeId id{{header.trainer, header.incarnation}, header.sequence};
  const bool waits = header.method == wire::Method::push && options.mode == Mode::sync;
  const auto answer =
      gate.claim(id, !waits, [this, header, body, respond] { handle(header, body, respond, {}); });
  if (answer == Gate::Answer::later) {
    respond = nullptr;
    return;
  }
  if (answer == Gate::Answer::applied) return std::exchange(respond, nullptr)(Message());
  if (waits) return push_in_step(header, body, respond, id);
  try {
    apply(header, body);
  } catch (const Error& error) {
    gate.refused({id}, error);
    throw;
  } catch (...) {
    gate.left({id});
    throw;
  }
  gate.applied({id});
  std::exchange(respond, nullptr)(Message());
}

void Server::State::apply(const wire::Header& header, Reader body) {
  if (header.method == wire::Method::set_dense) return set_dense(body);
  const auto request = read_checked_push(body);
  current()->apply(*request);
  record_touched(header, *request);
  note_push(header, *request);
}

void Server::State::push_in_step(const wire::Header& header, Reader body, Respond& respond,
                                 const ChangeId& id) {
  try {
    const Reader whole = body;
    auto request = read_checked_push(body);
    // A copy: when the push is refused, handle() answers.
    Respond answer = [this, id, respond](Outcome outcome) {
      if (std::holds_alternative<Error>(outcome)) gate.dropped(id);
      respond(std::move(outcome));
    };
    meeting.push({{header.trainer, header.thread}, std::move(request), std::move(answer), id, whole});
    respond = nullptr;
  } catch (const Error& error) {
    gate.note_refusal(id, error);
    gate.dropped(id);
    throw;
  }
}

void Server::State::apply_step(const std::vector<Contribution>& step) {
  std::vector<ChangeId> ids;
  for (const Contribution& contribution : step) ids.push_back(contribution.change);
  gate.enter(ids);
  try {
    apply_averaged(step, *current());
  } catch (const Error& error) {
    gate.refused(ids, error);
    throw;
  } catch (...) {
    gate.left(ids);
    throw;
  }
  gate.applied(ids);
}

}  // namespace fleetrun::ps
