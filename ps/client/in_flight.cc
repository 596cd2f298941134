#include "ps/client/in_flight.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace fleetrun::ps {

struct InFlight::State {
  const std::string server;
  const Limits limits;
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::size_t calls = 0;
  std::uint64_t bytes = 0;

  State(std::string name, const Limits& max) : server(std::move(name)), limits(max) {}

  bool fits(std::uint64_t more) const noexcept {
    return calls == 0 || (calls < limits.calls && more <= limits.bytes && bytes <= limits.bytes - more);
  }
};

InFlight::InFlight(std::string server, const Limits& limits)
    : state_(std::make_shared<State>(std::move(server), limits)) {}

InFlight::Ticket InFlight::enter(std::uint64_t bytes) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  const auto has_room = [&] { return state.fits(bytes); };
  const auto patience = state.limits.patience;
  if (patience.count() == 0) {
    state.changed.wait(lock, has_room);
  } else if (!state.changed.wait_for(lock, patience, has_room)) {
    throw no_room(state.server, state.calls, state.bytes, patience);
  }
  ++state.calls;
  state.bytes += bytes;
  return Ticket(state_, bytes);
}

InFlight::Ticket& InFlight::Ticket::operator=(Ticket&& other) noexcept {
  leave();
  state_ = std::move(other.state_);
  bytes_ = other.bytes_;
  return *this;
}

void InFlight::Ticket::leave() noexcept {
  const std::shared_ptr<State> state = std::move(state_);
  if (!state) return;
  const std::lock_guard lock(state->mutex);
  --state->calls;
  state->bytes -= bytes_;
  state->changed.notify_all();
}

Error no_room(const std::string& server, std::size_t calls, std::uint64_t bytes,
              std::chrono::milliseconds patience) {
  return Error(ErrorKind::timeout,
               server + " has not answered " + std::to_string(calls) + " requests of " +
                   std::to_string(bytes) + " bytes, and no more are sent; waited " +
                   std::to_string(patience.count()) + " ms",
               "look at that server: it is stopped, or has more to do than it can (FLEETRUN_PS_DEADLINE)");
}

}  // namespace fleetrun::ps
