// Where the time of an epoch goes: by stage always, by operator and as a timeline when asked for.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/timeline.h"
#include "runtime/engine/program.h"

namespace fleetrun::runtime {

/// What a trainer thread does in turn: wait for the next batch and lay it out, wait for parameters, run the
/// program, hand its gradients over (and wait for those before). Exchange, of epochs that are trained
/// collectively: wait for this trainer's other threads, and average with the other trainers.
enum class Stage { read, pull, compute, push, exchange };
inline constexpr std::size_t kStages = 5;
std::string_view to_string(Stage stage) noexcept;

/// By stage, added up over threads. 0: the epoch has no such stage.
using StageSeconds = std::array<double, kStages>;

struct OperatorTime {
  std::uint64_t calls = 0;
  double seconds = 0;
};
/// By type.
using OperatorTimes = std::map<std::string, OperatorTime, std::less<>>;

/// What one thread of an epoch measures. Threads: one at a time.
class EpochProfile {
 public:
  using Clock = TimelineClock;

  /// operators: whether they are added up. `track` draws stages and operators.
  EpochProfile(bool operators, Track track) : operators_wanted_(operators), track_(std::move(track)) {}

  /// Whether each operator has to be told by ran().
  bool wants_operators() const noexcept { return operators_wanted_ || track_.is_drawn(); }
  /// Does `work` as part of a stage and returns its result.
  template <class Work>
  decltype(auto) timed(Stage stage, const Work& work) {
    const Ending ending{*this, stage, Clock::now()};
    return work();
  }
  /// A stage, or a part of it.
  void add(Stage stage, Clock::time_point from, Clock::time_point to);
  /// An operator that has just ended.
  void ran(const engine::Operator& op, double seconds);

  const StageSeconds& stages() const noexcept { return stages_; }
  const OperatorTimes& operators() const noexcept { return operators_; }
  Track& track() noexcept { return track_; }

 private:
  struct Ending {
    EpochProfile& profile;
    Stage stage;
    Clock::time_point from;
    ~Ending() { profile.add(stage, from, Clock::now()); }
  };

  bool operators_wanted_;
  Track track_;
  StageSeconds stages_{};
  OperatorTimes operators_;
};

/// "bound by compute: read 3 %, pull 1 %, compute 92 %, push 4 % of the threads' time; ADVICE".
/// Empty for no time.
std::string bound_of(const StageSeconds& stages);

/// A line for each type of operator, the longest first: calls, milliseconds, share of all.
std::string table_of(const OperatorTimes& operators);

}  // namespace fleetrun::runtime
