// How stale pushes are, and threads that wait for slower ones where that is bounded.
#include "ps/server/server_state.h"

namespace fleetrun::ps {

namespace {

void answer_all(std::vector<Respond> responds) {
  for (const Respond& respond : responds) respond(Message());
}

}  // namespace

// In geo mode differences of all tables are one push, and what a trainer pulls of dense tables is before it.
static Staleness::Kind kind_of(Mode mode, bool has_rows) {
  return has_rows && mode != Mode::geo ? Staleness::Kind::rows : Staleness::Kind::dense;
}

void Server::State::note_pull(const wire::Header& header, const wire::PullRequest& request) {
  if (header.thread == kNoThread || options.mode == Mode::sync) return;
  staleness.pulled({header.trainer, header.thread}, kind_of(options.mode, !request.keys.empty()));
}

void Server::State::note_push(const wire::Header& header, const wire::PushRequest& request) {
  if (options.mode == Mode::sync) return;
  staleness.pushed({header.trainer, options.mode == Mode::geo ? 0 : header.thread},
                   kind_of(options.mode, !request.keys.empty()));
}

Message Server::State::take_staleness(const wire::Header& header) {
  const StalenessCounts counts = staleness.take(header.trainer);
  Message out(3 * sizeof(std::uint64_t));
  Writer writer(out);
  writer.value(counts.pushes);
  writer.value(counts.total);
  writer.value(counts.highest);
  return out;
}

void Server::State::keep_pace(const wire::Header& header, Reader& body, Respond& respond) {
  const auto number = body.value<std::uint64_t>();
  const auto bound = body.value<std::uint64_t>();
  wire::expect_end(body);
  constexpr std::uint64_t kMax = std::uint64_t{1} << 60;
  std::vector<Respond> ready;
  const Participant from{header.trainer, header.thread};
  {
    const std::lock_guard lock(bound_mutex);
    if (number == kLeavesBound) {
      ready = staleness_bound.leave(from);
      ready.push_back(std::exchange(respond, nullptr));
    } else {
      ready = staleness_bound.begin(
          {from, std::min(number, kMax), std::min(bound, kMax), std::exchange(respond, nullptr)});
    }
  }
  answer_all(std::move(ready));
}

void Server::State::leave_bound(std::uint32_t trainer) {
  std::vector<Respond> ready;
  {
    const std::lock_guard lock(bound_mutex);
    ready = staleness_bound.leave_all(trainer);
  }
  answer_all(std::move(ready));
}

void Server::State::end_bound() {
  std::vector<Respond> waiting;
  {
    const std::lock_guard lock(bound_mutex);
    waiting = staleness_bound.give_up();
  }
  for (const Respond& respond : waiting) respond(Error(ErrorKind::network, name_of(options) + " is ending"));
}

}  // namespace fleetrun::ps
