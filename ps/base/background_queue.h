// Saving and loading may take long: they have a thread of their own, so that calls and keepalive pings go on
// meanwhile, whatever transport they came by.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "ps/base/wire.h"

namespace fleetrun::ps {

bool is_slow(wire::Method method) noexcept;

/// Runs jobs one after the other on a thread of its own. Threads: any.
class BackgroundQueue {
 public:
  BackgroundQueue() : thread_([this] { run(); }) {}
  ~BackgroundQueue() { finish(); }
  BackgroundQueue(const BackgroundQueue&) = delete;
  BackgroundQueue& operator=(const BackgroundQueue&) = delete;

  void add(std::function<void()> job);
  /// Returns when all jobs are done; none may be added then.
  void finish();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool finishing_ = false;
  std::thread thread_;
};

}  // namespace fleetrun::ps
