// Things to be done later, on a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace fleetrun::ps {

/// Threads: all calls may be made from several threads at once.
class Patience {
 public:
  Patience();
  /// What is not due yet is never done.
  ~Patience();
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  void after(std::chrono::milliseconds delay, std::function<void()> then);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<std::chrono::steady_clock::time_point, std::function<void()>> waiting_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace fleetrun::ps
