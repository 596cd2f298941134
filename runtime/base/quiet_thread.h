// A thread that no signal is delivered to: those of the process are for the thread that listens to them.
#pragma once

#include <signal.h>

#include <thread>
#include <utility>

namespace fleetrun {

/// Throws: std::system_error, when there is no room for another thread.
template <class Work>
std::thread quiet_thread(Work work) {
  sigset_t all;
  ::sigfillset(&all);
  struct Mask {
    explicit Mask(const sigset_t& set) { ::pthread_sigmask(SIG_SETMASK, &set, &before); }
    ~Mask() { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  };
  const Mask mask(all);
  return std::thread(std::move(work));
}

}  // namespace fleetrun
