// Failures on purpose (--inject), for tests and for users who want to know what their job does when a process
// dies: the words of the flag, what they mean for a job's processes, and what is due in an attempt. Pure;
// carried out by launcher/run/injector.
//
//   spec   := clause { ';' clause }
//   clause := action { key=value }              on a process of the job
//           | launcher signal { key=value }     on fleetrun itself
//           | init signal { key=value }         on fleetrun-init
//   action := signal | slow-start               a signal: kill stop cont term segv abort …
//                                               or any other's name
//
//   rank=N | any | all      which process of the role; any: one of them, drawn
//   role=NAME               default: the one role that is waited for (trainers)
//   at=started              as soon as the process is started (default)
//   at=2s | at=1s..5s       after the attempt began; a range: a time in it, drawn
//   at=step:120             when the process's heartbeats have reached that step
//   attempt=N | any         default 0, the first one
//   chance=0.5              drawn for each process and attempt; default 1
//   by=500ms | by=0s..2s    slow-start only: how much later the process is started
//
// What is drawn depends on the seed, the clause, the process and the attempt only: one seed, one course.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launcher {

struct Injection {
  enum class Target { process, launcher, init };
  enum class Choice { one, any, all };
  enum class Moment { started, elapsed, step };
  /// from == to where one time was written.
  struct Window {
    std::chrono::milliseconds from{}, to{};
    bool operator==(const Window&) const = default;
  };

  Target target = Target::process;
  int signal = 0;  // 0: slow-start
  Choice choice = Choice::one;
  int rank = 0;      // choice `one` only
  std::string role;  // empty: not written
  Moment moment = Moment::started;
  Window at;
  std::int64_t step = 0;
  std::optional<int> attempt = 0;  // nullopt: every one
  double chance = 1;
  Window by;
  std::string text;  // the clause as it was written

  bool operator==(const Injection&) const = default;
};

/// Throws: Error(usage) with the clause, what is wrong in it, and the nearest word that exists.
std::vector<Injection> parse_injections(std::string_view spec);

/// One process of the job, in the plan's order.
struct InjectionTarget {
  std::string role;
  int rank = 0;
  bool serves = false;
};

/// Throws: Error(config) for a role or rank that the job does not have.
void check_injections(std::span<const Injection> injections, std::span<const InjectionTarget> processes);

/// A signal that is due in one attempt.
struct PlannedSignal {
  Injection::Target target = Injection::Target::process;
  std::size_t index = 0;  // of a process
  int signal = 0;
  Injection::Moment moment = Injection::Moment::started;
  std::chrono::milliseconds at{};  // after the attempt began
  std::int64_t step = 0;
  std::string what;  // "SIGKILL to trainer 1, 2 s into attempt 0"

  bool operator==(const PlannedSignal&) const = default;
};

struct InjectionPlan {
  std::vector<PlannedSignal> signals;
  std::vector<std::chrono::milliseconds> start_delays;  // by process

  bool operator==(const InjectionPlan&) const = default;
};

/// What is due in `attempt`. The injections have been checked against `processes`.
InjectionPlan plan_injections(std::span<const Injection> injections,
                              std::span<const InjectionTarget> processes, int attempt, std::uint64_t seed);

/// Whether anything in it is drawn: then the seed is worth telling.
bool needs_seed(std::span<const Injection> injections) noexcept;

/// Whether a step of a heartbeat is waited for.
bool needs_heartbeats(std::span<const Injection> injections) noexcept;

}  // namespace fleetrun::launcher
