// What a client has sent to one server and the server has not answered: so much and no more, however long the
// server takes. Who wants to send more waits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/error.h"

namespace fleetrun::ps {

/// Threads: all calls may be made from several threads at once.
class InFlight {
 public:
  struct Limits {
    std::size_t calls = 1024;
    /// A request that is longer goes alone.
    std::uint64_t bytes = std::uint64_t{256} << 20;
    /// For room; 0: for ever.
    std::chrono::milliseconds patience{0};
  };

  /// The room of one request, until it is destroyed or assigned to; it may outlive the InFlight.
  class Ticket;

  /// `server` is how errors call it: "server 0 at 127.0.0.1:6180".
  InFlight(std::string server, const Limits& limits);
  /// Waits until there is room. Throws: Error(timeout) naming the server.
  Ticket enter(std::uint64_t bytes);

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the tickets
};

class InFlight::Ticket {
 public:
  Ticket() = default;
  Ticket(std::shared_ptr<State> state, std::uint64_t bytes) : state_(std::move(state)), bytes_(bytes) {}
  Ticket(Ticket&&) = default;
  Ticket& operator=(Ticket&& other) noexcept;
  ~Ticket() { leave(); }

 private:
  void leave() noexcept;

  std::shared_ptr<State> state_;
  std::uint64_t bytes_ = 0;
};

/// What who has waited for room in vain is told.
Error no_room(const std::string& server, std::size_t calls, std::uint64_t bytes,
              std::chrono::milliseconds patience);

}  // namespace fleetrun::ps
