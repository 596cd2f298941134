// Does the pulls and pushes of one trainer thread on a thread of its own, one after the other, in the order
// in which they were asked for.
//
// The order is what bounds staleness: a pull that was asked for after a push sees that push applied. The
// thread takes finding distinct keys, adding gradients up and copying messages off the thread that computes.
#pragma once

#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "ps/client/step_client.h"
#include "runtime/base/timeline.h"

namespace fleetrun::runtime {

/// Threads: asked by one thread.
class ExchangeQueue {
 public:
  /// Borrows the client. `track` draws each pull and push.
  explicit ExchangeQueue(ps::StepClient& client, Track track = {});
  /// Finishes what was asked for.
  ~ExchangeQueue();
  ExchangeQueue(const ExchangeQueue&) = delete;
  ExchangeQueue& operator=(const ExchangeQueue&) = delete;

  /// As Client's: the spans of a request must stay valid until its Pending was waited for or destroyed.
  std::unique_ptr<ps::Pending> pull_async(ps::Pull request);
  std::unique_ptr<ps::Pending> push_async(ps::Push request);

 private:
  using Task = std::packaged_task<void()>;
  std::unique_ptr<ps::Pending> add(Task task);
  void work() noexcept;

  ps::StepClient& client_;
  Track track_;  // of the thread
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool ending_ = false;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace fleetrun::runtime
