// Makes checkpoints when it is time for one, on a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace fleetrun::ps {

class Checkpointer {
 public:
  /// `make` is called every `interval`, and soon after wake(); 0: only then.
  Checkpointer(std::chrono::milliseconds interval, std::function<void()> make);
  /// Waits for one that is being made.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  void wake();

 private:
  void run();

  std::chrono::milliseconds interval_;
  std::function<void()> make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace fleetrun::ps
