// Which process is slower than its likes, by the steps of its heartbeats. Pure. A slow one is told about and
// never ended: it may have more to do.
//
// What is compared is the median time of a step over the last steps seen: the step's own work where the
// processes say it ("step 120 0.35"), else the time from step to step. Processes that wait for each other in
// each step have the same time from step to step, so among them only the first kind tells who is slow.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launcher/run/heartbeat.h"

namespace fleetrun::launcher {

struct Straggler {
  std::size_t index = 0;
  double seconds = 0;  // its median
  double usual = 0;    // the median of the medians of the others of its role
  bool operator==(const Straggler&) const = default;
};

class PaceJudge {
 public:
  /// One role per process of the plan. Slow is who takes `ratio` times as long as usual.
  explicit PaceJudge(std::vector<std::string> roles, double ratio = 3);

  /// Shows it what the processes have said until `now`. Returns those that have become slow; each is told
  /// once, and again only after it was not slow in between.
  std::vector<Straggler> look(std::chrono::nanoseconds now, std::span<const Heartbeat> heartbeats);

  /// The process has been started anew.
  void forget(std::size_t index);

 private:
  struct Pace {
    std::optional<std::int64_t> step;
    std::chrono::nanoseconds since{};
    std::deque<double> between, work;  // the last ones, in seconds
    bool told = false;
  };

  void add(Pace& pace, std::chrono::nanoseconds now, const Heartbeat& heartbeat) const;
  std::optional<Straggler> compare(std::size_t index) const;

  std::vector<std::string> roles_;
  double ratio_;
  std::vector<Pace> paces_;
};

/// "is slow: 0.9 s a step, the others 0.1 s"
std::string to_string(const Straggler& straggler);

}  // namespace fleetrun::launcher
