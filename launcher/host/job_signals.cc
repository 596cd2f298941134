#include "launcher/host/job_signals.h"

#include <signal.h>
#include <unistd.h>

#include <boost/asio/signal_set.hpp>

#include <atomic>
#include <chrono>
#include <utility>

namespace fleetrun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kOneStorm{1};  // in which signals mean one thing

// A handler reads them.
volatile sig_atomic_t g_status = -1;
std::atomic<Clock::rep> g_job_ended = 0;

void on_late_signal(int) {
  const Clock::duration ended{g_job_ended.load()};
  if (g_status >= 0 && Clock::now().time_since_epoch() - ended >= kOneStorm) ::_exit(g_status);
}

}  // namespace

struct JobSignals::Set {
  boost::asio::signal_set signals;
};

JobSignals::JobSignals(boost::asio::io_context& loop, std::vector<int> numbers,
                       std::function<void(int)> heard)
    : numbers_(std::move(numbers)), heard_(std::move(heard)), set_(new Set{boost::asio::signal_set(loop)}) {
  for (const int number : numbers_) set_->signals.add(number);
  mask(SIG_UNBLOCK);
  listen();
}

void JobSignals::listen() {
  set_->signals.async_wait(still_here_.only([this](const boost::system::error_code& error, int number) {
    if (error) return;
    listen();
    hear(number, false);
  }));
}

void JobSignals::hear_also(int number) {
  hear(number, true);
}

void JobSignals::hear(int number, bool elsewhere) {
  const auto now = Clock::now();
  const auto twin = heard_at_[!elsewhere].find(number);
  if (twin != heard_at_[!elsewhere].end() && now - twin->second < kOneStorm) {
    heard_at_[!elsewhere].erase(twin);  // the next one is another
    return;
  }
  heard_at_[elsewhere][number] = now;
  heard_(number);
}

/// Held back while Asio's handlers go, which leave the defaults behind. Other threads take no signals.
JobSignals::~JobSignals() {
  if (!set_) return;
  hand_over();
  g_job_ended = Clock::now().time_since_epoch().count();
  struct sigaction late = {};
  late.sa_handler = on_late_signal;
  late.sa_flags = SA_RESTART;
  for (const int number : numbers_) ::sigaction(number, &late, nullptr);
  mask(SIG_UNBLOCK);
}

void JobSignals::hand_over() {
  mask(SIG_BLOCK);
  set_.reset();
}

void JobSignals::mask(int how) const noexcept {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : numbers_) ::sigaddset(&set, number);
  ::pthread_sigmask(how, &set, nullptr);
}

void leave_with(int status) noexcept {
  g_status = status;
}

}  // namespace fleetrun::launcher
