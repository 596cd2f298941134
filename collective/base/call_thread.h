// Calls that run in order on a thread beside the caller: what Communicator::start() needs.
//
// The thread is there from the first start() on. Calls that are made in the caller's own thread come after
// those that were started: finish() first.
#pragma once

#include <functional>
#include <memory>

#include "collective/base/communicator.h"

namespace fleetrun::collective {

class CallThread {
 public:
  /// `run` makes one call, on the thread; what it throws is what the call's Work throws.
  explicit CallThread(std::function<void(const Call&)> run);
  /// Waits for all calls that were started.
  ~CallThread();
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  /// Threads: start(), finish() and is_idle() by one at a time.
  std::unique_ptr<Work> start(const Call& call);
  /// Returns when nothing is under way.
  void finish() noexcept;
  bool is_idle() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;  // of this, the thread, and the works
};

}  // namespace fleetrun::collective
