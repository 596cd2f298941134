// The time of the state machines of this folder, and what wakes them at their next deadline.
#pragma once

#include <functional>
#include <memory>

#include "launcher/cluster/messages.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

/// Microseconds of CLOCK_BOOTTIME, which goes on while the host sleeps.
Instant cluster_now() noexcept;

/// Calls `ring` in the loop at a deadline. A deadline that is put off costs nothing: `ring` then comes at the
/// earlier one, which state machines expect, and the next is set afterwards.
class DeadlineTimer {
 public:
  DeadlineTimer(boost::asio::io_context& loop, std::function<void()> ring);
  ~DeadlineTimer();
  DeadlineTimer(const DeadlineTimer&) = delete;
  DeadlineTimer& operator=(const DeadlineTimer&) = delete;

  /// Instant::max(): there is none.
  void set(Instant deadline);

 private:
  struct State;
  std::shared_ptr<State> state_;  // with the wait that is under way
};

}  // namespace fleetrun::launcher
