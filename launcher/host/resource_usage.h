// What processes use of the machine, read from /proc when somebody asks.
//
// A process of a job is counted with everything that it started: its descendants, and whatever is in its
// session (each process of a job leads one), so that data-loading workers belong to their trainer also when
// the process between them has ended. One pass over /proc answers for all processes of a job; it costs about
// 10 µs per process of the host, so nothing calls it unasked.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launcher {

struct ResourceUsage {
  double cpu_seconds = 0;       // user and system, with the ended children that were waited for
  std::uint64_t rss_bytes = 0;  // resident memory; a page shared by two of the processes counts twice
  int processes = 0;            // 0: the process is gone
  char state = 0;               // of the process itself, as the kernel calls it: R S D T Z …
  bool operator==(const ResourceUsage&) const = default;
};

/// One line of /proc/PID/stat, as far as it is needed here. Times are in clock ticks.
struct ProcStat {
  pid_t pid = 0, parent = 0, session = 0;
  char state = 0;
  std::uint64_t cpu_ticks = 0, start_ticks = 0;
  std::uint64_t rss_pages = 0;
  bool operator==(const ProcStat&) const = default;
};

/// Pure. nullopt when `text` is not such a line. The program's name may hold blanks and brackets.
std::optional<ProcStat> parse_proc_stat(std::string_view text) noexcept;

/// The sum for each of `pids`. Pure.
/// Cost: O((processes + pids) log(processes)).
std::vector<ResourceUsage> sum_usage(const std::vector<pid_t>& pids, const std::vector<ProcStat>& processes);

/// Every process that the files below `proc` tell of.
std::vector<ProcStat> read_processes(const std::string& proc = "/proc");

/// What each of `pids` uses now, by the files below `proc`.
std::vector<ResourceUsage> read_usage(const std::vector<pid_t>& pids, const std::string& proc = "/proc");

/// nullopt when there is no such process.
std::optional<ProcStat> proc_stat_of(pid_t pid, const std::string& proc = "/proc");

/// When `pid` was started, in clock ticks since the machine was: with the pid, the name of one process for
/// ever. nullopt when there is no such process.
std::optional<std::uint64_t> start_ticks_of(pid_t pid, const std::string& proc = "/proc");

}  // namespace fleetrun::launcher
