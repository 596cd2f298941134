#include "ps/client/pending_calls.h"

#include <utility>

#include "runtime/base/error.h"

namespace fleetrun::ps {

PendingCalls::~PendingCalls() {
  tell_ = nullptr;
  if (!waited_) wait_for_endings();
}

// False: the limit came first.
bool PendingCalls::wait_for_endings() {
  if (limit_.count() != 0) return endings_->wait(calls_.size(), started_ + limit_);
  while (tell_) {
    if (endings_->wait(calls_.size(), Clock::now() + interval_)) return true;
    if (tell_()) tell_ = nullptr;
  }
  endings_->wait(calls_.size());
  return true;
}

void PendingCalls::on_long_wait(std::chrono::milliseconds interval, std::function<bool()> tell) {
  interval_ = interval;
  tell_ = std::move(tell);
}

void PendingCalls::time_out() const {
  std::string silent;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    if (!calls_[i].call->has_ended()) silent += (silent.empty() ? "" : ", ") + names_[i];
  }
  throw Error(ErrorKind::timeout,
              "no answer to a " + what_ + " within " + std::to_string(limit_.count()) + " ms from " + silent,
              "look at that server: it is stopped, or has more to do than it can (FLEETRUN_PS_DEADLINE)");
}

void PendingCalls::start(Channel& channel, std::uint32_t server, const wire::Header& header,
                         Message request) {
  if (calls_.empty()) {
    started_ = Clock::now();
    what_ = wire::to_string(header.method);
  }
  names_.push_back(channel.name());
  calls_.push_back({server, nullptr});
  try {
    calls_.back().call = channel.start(header, std::move(request), endings_);
  } catch (...) {
    calls_.pop_back();
    // The calls already on their way are given up.
    waited_ = true;
    throw;
  }
}

void PendingCalls::on_answer(Join join, std::function<void()> finish) {
  join_ = std::move(join);
  finish_ = std::move(finish);
}

void PendingCalls::wait() {
  waited_ = true;
  if (!wait_for_endings()) time_out();
  // When a call failed, others may still be under way: the failed one is found first and its error leaves.
  bool all_ended = true;
  for (const Started& started : calls_) all_ended = all_ended && started.call->has_ended();
  if (!all_ended) {
    for (const Started& started : calls_) {
      if (started.call->has_ended()) static_cast<void>(started.call->result());
    }
  }
  for (const Started& started : calls_) {
    Reader answer = started.call->result();
    if (join_) join_(started.server, std::move(answer));
  }
  if (finish_) finish_();
}

}  // namespace fleetrun::ps
