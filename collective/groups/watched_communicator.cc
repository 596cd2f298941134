#include "collective/groups/watched_communicator.h"

#include <utility>

namespace fleetrun::collective {

WatchedCommunicator::WatchedCommunicator(std::unique_ptr<Communicator> inner,
                                         std::function<void(const Error&)> announce,
                                         std::function<void()> forget)
    : place_(inner->place()),
      announce_(std::move(announce)),
      forget_(std::move(forget)),
      inner_(std::move(inner)),
      calls_([this](const Call& call) { make(call); }) {}

WatchedCommunicator::~WatchedCommunicator() {
  calls_.finish();  // while it can still be told that they will not end
  forget_();
}

void WatchedCommunicator::make(const Call& call) {
  try {
    inner_->run(call);
  } catch (const Error& error) {
    if (!is_over_.exchange(true)) announce_(error);
    throw;
  }
}

void WatchedCommunicator::run(const Call& call) {
  check(call, place_.rank, place_.size);
  calls_.finish();
  make(call);
}

std::unique_ptr<Work> WatchedCommunicator::start(const Call& call) {
  check(call, place_.rank, place_.size);
  return calls_.start(call);
}

void WatchedCommunicator::abort(const Error& why) noexcept {
  if (!is_over_.exchange(true)) announce_(why);
  inner_->abort(why);
}

void WatchedCommunicator::told(const Error& why) noexcept {
  is_over_ = true;
  inner_->abort(why);
}

}  // namespace fleetrun::collective
