#include "ps/pending_calls.h"

#include <utility>

namespace fleetrun::ps {

PendingCalls::~PendingCalls() {
  if (!waited_) endings_->wait(calls_.size());
}

void PendingCalls::start(Channel& channel, std::uint32_t server, const wire::Header& header,
                         Message request) {
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
  endings_->wait(calls_.size());
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
