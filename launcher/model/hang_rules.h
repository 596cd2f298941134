// Who hangs, by what was seen of each process: a pure judge that is shown every process from time to time.
//
//   sign        the process shows life when                   judged by it
//   heartbeat   it writes to FLEETRUN_HEARTBEAT_FD            once it has, in this run of it;
//                                                             never before its first
//   log         its log grows                                 where asked for, or where there is no heartbeat
//   cpu         it and its descendants use processor time     as log
//
// A process hangs when each of the signs that it is judged by has been missing for `timeout`. Without
// --hang_by these are the heartbeat for a process that has ever sent one, else log and cpu together.
// Processes that serve wait for others by their nature:
// only being stopped (SIGSTOP) counts for them, as it does for all.
//
// Time is what the judge has seen pass: a look that comes late, because fleetrun itself was stopped or the
// machine was away, counts as an ordinary one. A process under a debugger is not judged.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launcher {

struct HangSigns {
  bool heartbeat = false, log = false, cpu = false;
  bool any() const noexcept { return heartbeat || log || cpu; }
  bool operator==(const HangSigns&) const = default;
};

/// "heartbeat,log,cpu", in any order. nullopt when a word of it is none of these, or comes twice.
std::optional<HangSigns> parse_hang_signs(std::string_view text);

struct HangRules {
  std::chrono::milliseconds timeout{};  // 0: nobody looks
  HangSigns by;                         // none: see above
  bool operator==(const HangRules&) const = default;
};

/// The time between two looks.
std::chrono::milliseconds look_period(const HangRules& rules) noexcept;

/// What one look at a process shows.
struct Vitals {
  bool running = false;  // the rest is of no interest otherwise
  std::uint64_t beats = 0;
  std::optional<std::int64_t> step;
  std::int64_t log_bytes = 0;
  double cpu_seconds = 0;  // descendants included
  bool stopped = false;    // by a signal
  bool debugged = false;   // something traces it
};

/// A process that hangs.
struct Silence {
  std::size_t index = 0;
  std::chrono::milliseconds lasted{};
  std::string why;  // "sent no heartbeat for 30 s (step 120 was its last)"
  std::optional<std::int64_t> step;
  bool stopped = false;
  bool operator==(const Silence&) const = default;
};

/// Processes by index in the plan.
struct HangFindings {
  std::vector<Silence> silent;        // all that hang now, or soon after the first; the longest silence first
  std::vector<std::size_t> debugged;  // not judged from now on
};

class HangJudge {
 public:
  /// One entry per process: whether it serves.
  HangJudge(HangRules rules, std::vector<bool> serves);

  /// Shows it every process, `now` being of a clock that never goes back.
  HangFindings look(std::chrono::nanoseconds now, std::span<const Vitals> processes);

  /// Forgets what was seen of a process: it has been started anew.
  void forget(std::size_t index);

 private:
  /// Since when each sign of life is missing, in the judge's own time.
  struct Seen {
    bool known = false;
    Vitals last;
    std::chrono::nanoseconds beat{}, log{}, cpu{}, run{};
    double cpu_seconds = 0;  // at `cpu`
    bool debugged = false;
  };

  void update(Seen& seen, const Vitals& vitals) const;
  std::optional<Silence> judge(const Seen& seen, bool serves) const;

  HangRules rules_;
  std::vector<bool> serves_;
  std::vector<Seen> seen_;
  std::chrono::nanoseconds last_look_{-1}, time_{};
};

}  // namespace fleetrun::launcher
