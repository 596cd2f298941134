// run_interruptibly() for those who call often: one thread that stays, instead of one for each call.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

namespace fleetrun::python {

/// Threads: one call at a time.
class InterruptibleThread {
 public:
  InterruptibleThread() = default;
  /// A call that was left behind keeps its thread, which ends after it.
  ~InterruptibleThread();
  InterruptibleThread(const InterruptibleThread&) = delete;
  InterruptibleThread& operator=(const InterruptibleThread&) = delete;

  /// As run_interruptibly(); called with the GIL. On a thread that gets no signals `work` runs on it,
  /// without the GIL.
  void run(std::function<void()> work, const std::function<void()>& cancel);

 private:
  struct State;
  std::shared_ptr<State>
      state_;  // also the thread's; made by the first call, dropped when a call is left behind
};

}  // namespace fleetrun::python
