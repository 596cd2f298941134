// What can be known about the death of a process, read from the machine: memory counters of its cgroup,
// limits, full file systems, core files, and the end of its log.
//
// Evidence is a value; explain() (launcher/failure/cause.h) makes a sentence of it. EvidenceCollector is the
// only reader of the machine. Nobody tells a parent who sent a signal; what fleetrun itself sent is known,
// the rest is not, and is never guessed. That the kernel killed a process for want of memory is known from
// counters alone:
//
//   cgroup v1  memory.oom_control: oom_kill     of the victim's own group
//   cgroup v2  memory.events: oom_kill          of the victim's own group and of those below it
//   machine    /proc/vmstat: oom_kill           every such kill, whoever's
//
// begin() notes the counters; a process killed by SIGKILL takes one of the kills that were counted since and
// that nobody has taken.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/failure/failure_text.h"
#include "runtime/base/exit_reason.h"

namespace fleetrun::launcher {

/// One cgroup on the path of a process, with its memory numbers in bytes. No limit: no number.
struct MemoryGroup {
  std::string path;  // as in /proc/PID/cgroup: "/kubepods/pod1"
  int version = 2;
  std::optional<std::uint64_t> limit, peak, usage;

  bool operator==(const MemoryGroup&) const = default;
};

struct Evidence {
  std::optional<int> sent_signal;  // the last signal that fleetrun sent to it
  bool hung = false;               // fleetrun ended it because it hung
  std::string hang_why = {};       // "sent no heartbeat for 30 s"

  bool memory_counters = false;  // could the counters of its cgroup be read?
  std::uint64_t oom_kills = 0;   // counted in its cgroup, and nobody else's
  // counted on the machine since the job began, less those of others of the job
  std::uint64_t machine_oom_kills = 0;
  std::vector<MemoryGroup> groups;        // its own first, then its parents, where memory is accounted for
  std::optional<std::uint64_t> peak_rss;  // of the process, bytes

  std::optional<std::uint64_t> shared_memory_total, shared_memory_available;  // /dev/shm, after a SIGBUS
  std::optional<std::uint64_t> file_size_limit;    // RLIMIT_FSIZE, after a SIGXFSZ or when its log reached it
  std::optional<std::uint64_t> cpu_seconds_limit;  // RLIMIT_CPU, after a SIGXCPU or SIGKILL
  std::optional<std::uint64_t> address_space_limit;  // RLIMIT_AS, when its log says that memory ran out
  std::optional<std::uint64_t> log_device_total, log_device_available;  // where it failed and its log is full
  std::string core;  // where its core file is, or who has it; empty when nobody knows

  std::optional<FailureText> text;  // what the end of its log says
  std::string last_line = {};       // of its log, where that says nothing
  std::string log;                  // the log's path as messages show it

  bool operator==(const Evidence&) const = default;
};

/// A process that has ended, as far as its parent knows.
struct Death {
  std::size_t index = 0;
  pid_t pid = 0;
  ExitReason reason;
  std::int64_t at = 0;             // CLOCK_MONOTONIC, nanoseconds
  std::optional<int> sent_signal;  // the last signal that fleetrun sent to it before
  bool hung = false;
  std::string hang_why = {};
  std::optional<std::uint64_t> peak_rss;  // bytes
  std::string cwd;                        // where it ran
  std::string log_path, log_shown;
  off_t log_start = 0;        // where its own output begins
  std::string log_lost = {};  // the end of what did not fit into the log, where fleetrun-log has kept it
};

/// Where the machine is looked at. A test puts recorded files in a directory and names that.
struct MachineRoots {
  std::string proc = "/proc", cgroup = "/sys/fs/cgroup", shared_memory = "/dev/shm";
};

class EvidenceCollector {
 public:
  explicit EvidenceCollector(MachineRoots roots = {}) : roots_(std::move(roots)) {}

  /// Notes the counters of fleetrun's own cgroup, in which processes start. Before the first start; some 50
  /// µs.
  void begin();

  /// Notes the cgroup in which `pid` lives now, when it has moved. Costs some 10 µs; for a timer.
  void look(std::size_t index, pid_t pid);

  /// Counts at once the kills that may be this death's, before others come to them; collect() then knows.
  /// Reads one file, and that only after a SIGKILL from elsewhere.
  void note(const Death& death);

  /// Everything that can be known about `death`. Reads at most 64 KiB of its log. Never throws for what
  /// cannot be read: it is then not part of the evidence.
  Evidence collect(const Death& death);

 private:
  /// The group in which the memory of a process is accounted for.
  struct Home {
    std::string path;
    int version = 0;
    bool operator==(const Home&) const = default;
  };

  /// Its counter of out-of-memory kills.
  struct Counter {
    std::uint64_t before = 0;  // when it was first seen
    std::uint64_t taken = 0;   // kills since then that belong to somebody
    std::uint64_t seen = 0;    // kills since then, when last looked at
    std::int64_t seen_at = 0;  // when `seen` last grew
  };

  std::string directory_of(const Home& home) const;
  std::optional<Home> home_of(const std::string& pid) const;
  std::optional<Home> home_of_process(std::size_t index) const;
  std::optional<std::uint64_t> count_kills(const Home& home) const;
  Counter& counter_of(const Home& home);
  std::uint64_t take_kills(const Home& home, const Death& death);
  void add_memory(const Death& death, Evidence& evidence);

  MachineRoots roots_;
  std::uint64_t machine_kills_before_ = 0;
  std::uint64_t kills_taken_ = 0;            // by processes of this job
  std::map<std::string, Counter> counters_;  // by version and path
  std::optional<Home> home_;                 // of fleetrun itself, where processes start
  std::map<std::size_t, Home> homes_;        // of processes that live elsewhere
  std::map<std::size_t, std::uint64_t> noted_kills_;
};

}  // namespace fleetrun::launcher
