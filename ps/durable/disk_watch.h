// Whether a disk does what it is asked for. One that is overloaded, or a network's that has gone, makes who
// asks wait for minutes, and returns no error.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace fleetrun::ps {

class DiskWatch {
 public:
  /// Calls `tell` from a thread of its own: once when the disk has been asked for something for longer than
  /// `patience`, and once more when it has done that. With how long that has taken by then.
  using Tell = std::function<void(std::chrono::milliseconds waited, bool is_over)>;
  DiskWatch(std::chrono::milliseconds patience, Tell tell);
  ~DiskWatch();
  DiskWatch(const DiskWatch&) = delete;
  DiskWatch& operator=(const DiskWatch&) = delete;

  /// As long as this lives the disk is asked for something. Of several at once, the first counts.
  class Asking {
   public:
    /// Null: nobody watches.
    explicit Asking(DiskWatch* watch) noexcept;
    ~Asking();
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;

   private:
    DiskWatch* watch_;
  };

 private:
  using Clock = std::chrono::steady_clock;
  void run();

  const std::chrono::milliseconds patience_;
  const Tell tell_;
  std::atomic<Clock::rep> since_{0};  // 0: it is not asked for anything
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace fleetrun::ps
