// What an unreliable connection to a server in this process is made of (tests/support/unreliable_servers.h).
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>

#include "ps/base/outcome.h"
#include "ps/base/server_channel.h"

namespace fleetrun::tests {

struct UnreliableExchange {
  std::shared_ptr<ps::Endings> endings;
  std::mutex mutex;  // guards what follows
  bool ended = false;
  bool lost = false;
  ps::Outcome outcome;

  void end(ps::Outcome with, bool is_lost) {
    {
      const std::lock_guard lock(mutex);
      if (ended) return;
      ended = true;
      lost = is_lost;
      outcome = std::move(with);
    }
    endings->ended(std::holds_alternative<Error>(outcome));
  }
};
/// One connection. What is under way on it ends when it is cut.
struct UnreliableLink {
  std::uint64_t connection = 0;
  std::uint32_t trainer = 0;
  std::uint64_t incarnation = 0;
  std::function<void()> on_lost;
  std::mutex mutex;  // guards what follows
  bool is_cut = false;
  std::list<std::shared_ptr<UnreliableExchange>> waiting;

  void cut() {
    std::list<std::shared_ptr<UnreliableExchange>> unanswered;
    {
      const std::lock_guard lock(mutex);
      if (std::exchange(is_cut, true)) return;
      unanswered.swap(waiting);
    }
    for (const auto& exchange : unanswered)
      exchange->end(Error(ErrorKind::network, "the connection was cut"), true);
    on_lost();
  }
  bool answer(const std::shared_ptr<UnreliableExchange>& exchange, ps::Outcome outcome) {
    {
      const std::lock_guard lock(mutex);
      if (is_cut) return false;
      waiting.remove(exchange);
    }
    exchange->end(std::move(outcome), false);
    return true;
  }
};

class UnreliableCall : public ps::Call {
 public:
  explicit UnreliableCall(std::shared_ptr<UnreliableExchange> exchange) : exchange_(std::move(exchange)) {}
  bool has_ended() const override {
    const std::lock_guard lock(exchange_->mutex);
    return exchange_->ended;
  }
  ps::Reader result() override {
    const std::lock_guard lock(exchange_->mutex);
    if (const Error* error = std::get_if<Error>(&exchange_->outcome)) throw ps::separate_copy(*error);
    return ps::Reader(std::get<ps::Message>(exchange_->outcome).bytes());
  }
  bool was_lost() const override {
    const std::lock_guard lock(exchange_->mutex);
    return exchange_->lost;
  }

 private:
  std::shared_ptr<UnreliableExchange> exchange_;
};

}  // namespace fleetrun::tests
