// Where the time of a pass goes: by stage always, by operator and as a timeline when asked for.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/engine/program.h"

namespace fleetrun::runtime {

/// What a trainer thread does in turn: wait for the next batch and lay it out, wait for parameters, run the program, hand its
/// gradients over (and wait for those before).
enum class Stage { read, pull, compute, push };
inline constexpr std::size_t kStages = 4;
std::string_view to_string(Stage stage) noexcept;

/// By stage, added up over threads.
using StageSeconds = std::array<double, kStages>;

struct OperatorTime {
  std::uint64_t calls = 0;
  double seconds = 0;
};
/// By type.
using OperatorTimes = std::map<std::string, OperatorTime, std::less<>>;

/// One bar of the timeline; microseconds since the pass began. The name is a stage's or an operator's type.
struct TraceEvent {
  std::string name;
  std::string_view category;
  std::int64_t start = 0;
  std::int64_t duration = 0;
};

/// What one thread of a pass measures. Threads: one.
class PassProfile {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    bool operators = false;
    bool trace = false;
  };
  /// Of a thread: what is behind it is left out.
  static constexpr std::size_t kMostEvents = 500'000;

  PassProfile(Clock::time_point pass_start, const Options& options) : start_(pass_start), options_(options) {}

  /// Whether each operator has to be told by ran().
  bool wants_operators() const noexcept { return options_.operators || options_.trace; }
  /// Does `work` as part of a stage and returns its result.
  template <class Work>
  decltype(auto) timed(Stage stage, const Work& work) {
    const Ending ending{*this, stage, Clock::now()};
    return work();
  }
  /// An operator that has just ended.
  void ran(const engine::Operator& op, double seconds);

  const StageSeconds& stages() const noexcept { return stages_; }
  const OperatorTimes& operators() const noexcept { return operators_; }
  const std::vector<TraceEvent>& events() const noexcept { return events_; }

 private:
  struct Ending {
    PassProfile& profile;
    Stage stage;
    Clock::time_point from;
    ~Ending() { profile.ended(stage, from); }
  };
  void ended(Stage stage, Clock::time_point from);
  void add_event(std::string_view name, std::string_view category, Clock::time_point from,
                 Clock::time_point to);

  Clock::time_point start_;
  Options options_;
  StageSeconds stages_{};
  OperatorTimes operators_;
  std::vector<TraceEvent> events_;
};

/// "bound by compute: read 3 %, pull 1 %, compute 92 %, push 4 % of the threads' time; ADVICE". Empty for no time.
std::string bound_of(const StageSeconds& stages);

/// A line for each type of operator, the longest first: calls, milliseconds, share of all.
std::string table_of(const OperatorTimes& operators);

/// The timeline of all threads as JSON that chrome://tracing and Perfetto read.
/// Throws: Error(host) when `path` cannot be written.
/// Source: Trace Event Format, "complete events".
void write_trace(const std::string& path, std::int64_t process,
                 const std::vector<std::vector<TraceEvent>>& threads);

}  // namespace fleetrun::runtime
