#include "ps/server/request_gate.h"

#include <utility>

namespace fleetrun::ps {

bool RequestGate::enter() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::open) return false;
  ++inside_;
  return true;
}

void RequestGate::park(Parked parked) {
  bool goes_on = false;
  {
    const std::lock_guard lock(mutex_);
    goes_on = state_ == State::open;  // it has opened since
    if (!goes_on && state_ != State::answered) return parked_.push_back(std::move(parked));
  }
  parked(goes_on);
}

bool RequestGate::enter_waiting() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return state_ != State::closed; });
  if (state_ != State::open) return false;
  ++inside_;
  return true;
}

void RequestGate::leave() {
  const std::lock_guard lock(mutex_);
  if (--inside_ == 0) changed_.notify_all();
}

bool RequestGate::close(std::chrono::milliseconds patience) {
  {
    std::unique_lock lock(mutex_);
    if (state_ != State::open) return false;
    state_ = State::closed;
    if (changed_.wait_for(lock, patience, [this] { return inside_ == 0; })) return true;
  }
  open();
  return false;
}

void RequestGate::open() {
  std::vector<Parked> all;
  {
    const std::lock_guard lock(mutex_);
    state_ = State::open;
    all.swap(parked_);
    changed_.notify_all();
  }
  for (const Parked& parked : all) parked(true);
}

void RequestGate::end() {
  const std::lock_guard lock(mutex_);
  state_ = State::ended;
  changed_.notify_all();
}

void RequestGate::answer() {
  std::vector<Parked> all;
  {
    const std::lock_guard lock(mutex_);
    state_ = State::answered;
    all.swap(parked_);
  }
  for (const Parked& parked : all) parked(false);
}

}  // namespace fleetrun::ps
