// What an unreliable connection to a server in this process is made of (tests/support/unreliable_servers.h).
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>

#include "ps/base/outcome.h"
#include "ps/base/server_channel.h"
#include "ps/server/server.h"

namespace fleetrun::tests {

struct Unreliability {
  /// In a thousand requests.
  unsigned dropped = 50;
  unsigned answers_lost = 50;
  unsigned duplicated = 100;
  unsigned kills = 10;
};

/// Whether a server whose figures these are holds all of the server `rank`.
inline bool could_hand_back(const std::string& stat, std::uint32_t rank) {
  const std::size_t at = stat.find("{\"server\":" + std::to_string(rank) + ",\"records\"");
  return at != std::string::npos && stat.substr(at, stat.find('}', at) - at).ends_with("true");
}

/// What the server answers, now or later.
inline std::future<ps::Outcome> ask(ps::Server& server, const ps::Message& request) {
  auto answered = std::make_shared<std::promise<ps::Outcome>>();
  ps::Reader reader(request.bytes());
  const ps::wire::Header header = ps::wire::read_header(reader);
  server.handle(header, std::move(reader),
                [answered](ps::Outcome outcome) { answered->set_value(std::move(outcome)); });
  return answered->get_future();
}

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

/// A connection that loses nothing, for as long as `deliver` finds its server alive.
class DirectChannel : public ps::Channel {
 public:
  /// Throws: Error(network) where the server is another by now.
  using Deliver = std::function<void(ps::Reader, ps::Respond)>;
  explicit DirectChannel(Deliver deliver) : deliver_(std::move(deliver)) {}

  std::unique_ptr<ps::Call> start(const ps::wire::Header&, ps::Message request,
                                  std::shared_ptr<ps::Endings> endings) override {
    auto exchange = std::make_shared<UnreliableExchange>();
    exchange->endings = std::move(endings);
    const auto kept = std::make_shared<ps::Message>(std::move(request));
    deliver_(ps::Reader(kept->bytes()),
             [exchange, kept](ps::Outcome outcome) { exchange->end(std::move(outcome), false); });
    return std::make_unique<UnreliableCall>(std::move(exchange));
  }
  const std::string& name() const noexcept override { return name_; }

 private:
  Deliver deliver_;
  std::string name_ = "a server beside it";
};

}  // namespace fleetrun::tests
