#include "launcher/cluster/deadline_timer.h"

#include <time.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <utility>

namespace fleetrun::launcher {

namespace asio = boost::asio;
using boost::system::error_code;

Instant cluster_now() noexcept {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::duration_cast<Instant>(std::chrono::seconds(now.tv_sec) +
                                             std::chrono::nanoseconds(now.tv_nsec));
}

struct DeadlineTimer::State : std::enable_shared_from_this<State> {
  State(asio::io_context& loop, std::function<void()> its_ring) : timer(loop), ring(std::move(its_ring)) {}

  void wait(Instant deadline) {
    armed = deadline;
    timer.expires_after(std::max(deadline - cluster_now(), Instant::zero()));
    timer.async_wait([self = weak_from_this()](const error_code& error) {
      const auto state = self.lock();
      if (error || !state || !state->ring) return;
      state->armed = Instant::max();
      const auto ring = state->ring;  // whoever is called may let go of us
      ring();
    });
  }

  asio::steady_timer timer;
  std::function<void()> ring;
  Instant armed = Instant::max();
};

DeadlineTimer::DeadlineTimer(asio::io_context& loop, std::function<void()> ring)
    : state_(std::make_shared<State>(loop, std::move(ring))) {}
DeadlineTimer::~DeadlineTimer() {
  state_->ring = nullptr;
}

void DeadlineTimer::set(Instant deadline) {
  if (deadline < state_->armed) state_->wait(deadline);
}

}  // namespace fleetrun::launcher
