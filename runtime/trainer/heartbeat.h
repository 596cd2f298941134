// Signs of life of a training process for fleetrun's --hang_timeout, and values for its --metrics: a write to
// FLEETRUN_HEARTBEAT_FD now and then. What the descriptor does not take is dropped, so nothing here blocks.
// The Python package has the same for scripts (fleetrun.heartbeat).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/environ.h"
#include "runtime/trainer/event_file.h"

namespace fleetrun::runtime {

/// "beat batch=200 loss=0.41 examples_per_second=1200\n", as many lines as it takes. What a name may not hold
/// is an underscore there.
std::string report_lines(const TrainingEvent& event, double examples_per_second);

class Heartbeat {
 public:
  /// Without the variable, or when its number is not fleetrun's channel (the variable was inherited and the
  /// descriptor was not), nothing is ever written.
  explicit Heartbeat(const Environ& environ);

  bool is_heard() const noexcept { return fd_ >= 0; }

  /// Says that the process lives, unless that was said a moment ago.
  /// Threads: any. Cost: a look at the clock; a write every 50 ms.
  void beat() noexcept;

  /// Counts examples that were trained, and beats. Threads: any.
  void trained(std::size_t examples) noexcept;

  /// Says the event's batch and values, and how many examples were trained in a second since the last time.
  /// Threads: one at a time.
  void report(const TrainingEvent& event) noexcept;

 private:
  int fd_ = -1;
  std::atomic<std::chrono::steady_clock::rep> due_{0};
  std::atomic<std::uint64_t> examples_{0};
  std::uint64_t reported_ = 0;  // of examples_
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace fleetrun::runtime
