// How long a call of a communicator may take, from the moment in which a rank makes it. Copies are one limit:
// who made the communicator changes it for the calls to come, wherever it was handed on to.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

namespace fleetrun::collective {

/// Threads: any.
class TimeLimit {
 public:
  template <class Number, class Period>
  TimeLimit(std::chrono::duration<Number, Period> time)  // NOLINT(google-explicit-constructor)
      : time_(std::make_shared<std::atomic<std::chrono::milliseconds>>(time)) {}

  std::chrono::milliseconds time() const noexcept { return *time_; }
  void set(std::chrono::milliseconds time) const noexcept { *time_ = time; }

 private:
  std::shared_ptr<std::atomic<std::chrono::milliseconds>> time_;
};

}  // namespace fleetrun::collective
