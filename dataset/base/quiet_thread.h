// Threads of the datasets beside the program's own.
#pragma once

#include <signal.h>

#include <exception>
#include <thread>
#include <utility>

namespace fleetrun::dataset {

/// A thread that no signal is delivered to: those are the main thread's business. Throws: std::system_error.
template <class Function>
std::thread quiet_thread(Function function) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::exception_ptr failure;
  std::thread thread;
  try {
    thread = std::thread(std::move(function));
  } catch (...) {
    failure = std::current_exception();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failure) std::rethrow_exception(failure);
  return thread;
}

}  // namespace fleetrun::dataset
