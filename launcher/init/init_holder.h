// Holds a pod: starts the processes that fleetrun describes, reaps every orphan, reports exits in the order
// in which they happened, kills what is left over, and proves that it is gone.
//
//   killing   passes over what is left, until wait() says ECHILD and the cgroup says that it is empty: every
//             5 ms in the first second, then every 50 ms, after five seconds every second; deaths are seen at
//             once in between. What is alive after five seconds is named to fleetrun (`unkillable`), and so
//             are processes that live on five seconds after a SIGKILL that fleetrun sent.
//
// Single-threaded, no polling while nothing is being killed. All signals are blocked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/init/containment.h"
#include "launcher/init/init_lease.h"
#include "launcher/init/init_lifeline.h"
#include "launcher/init/init_namespace.h"
#include "launcher/init/init_start.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

class InitHolder {
 public:
  struct Means {
    CgroupLeaf cgroup;  // may be empty
    std::optional<PidNamespace> pid_namespace;
  };

  /// `lifeline` is borrowed, and so is `signals`, a signalfd of SIGCHLD and SIGTERM.
  InitHolder(InitLifeline& lifeline, int signals, SetupFrame setup, Means means);

  /// Returns when the pod is empty and fleetrun knows it, or is gone.
  void run();

 private:
  struct Process {
    pid_t pid = -1;        // as init sees it
    pid_t shown_pid = -1;  // as fleetrun sees it
    UniqueFd pidfd;
    StartSlot slot;
  };

  /// By what the leftovers of a process can be told.
  struct Traces {
    pid_t session = -1;
    std::vector<std::string> marks;  // of its environment
    CgroupLeaf cgroup;               // empty: none of its own
  };

  struct Sweep {
    std::uint32_t index = kEveryProcess;
    bool lapse = false;       // nobody asked for it
    bool watch_only = false;  // a signal killed them, and they are only to be named when they live on
    std::int64_t began = 0, next_pass = 0;
    std::int64_t leisure = 0;  // for so long what is left may end by itself
    int passes = 0;
    std::set<pid_t> killed = {};  // those of one process's leftovers that may still be dying
    std::set<pid_t> told = {};    // as unkillable
  };

  void watch(int fd, std::uint64_t tag, std::uint32_t events);
  int wait_limit_ms() const;
  void on_signals();
  void on_sigterm();
  void on_lifeline();
  void on_frame(const StartFrame& frame);
  void on_frame(const SignalFrame& frame);
  void on_frame(const SweepFrame& frame);
  void on_lease();
  Traces& trace(const StartFrame& frame);
  pid_t shown_pid(pid_t pid, int pidfd) const;
  void record(const StartFrame& frame, StartedProcess started);

  void reap(std::uint32_t index);
  void reap_orphans();
  /// Whether there are no children any more.
  bool reap_everything();
  void report_exit(std::uint32_t index, int status, std::int64_t max_rss_kib);

  void sweep_on();
  bool is_swept(Sweep& sweep);
  void renew_cgroups(std::uint32_t index);
  void kill_pass(Sweep& sweep);
  std::vector<pid_t> still_alive(const Sweep& sweep) const;
  std::vector<pid_t> left_over(std::uint32_t index) const;
  void name_unkillable(Sweep& sweep);
  void name_left_running();
  void end(bool gently = false);

  InitLifeline& lifeline_;
  int signals_;
  SetupFrame setup_;
  CgroupLeaf cgroup_;
  std::optional<PidNamespace> namespace_;
  UniqueFd null_, events_;
  const Environ environment_ = Environ::of_process();
  const std::int64_t record_delay_, report_delay_, patience_, leisure_;  // failpoints
  StartContext context_;
  std::map<std::uint32_t, Process> processes_;
  std::map<pid_t, std::uint32_t> index_of_;
  std::map<std::uint32_t, Traces> traces_;
  std::vector<Sweep> sweeps_;
  InitLease lease_;
  std::optional<std::int64_t> told_to_end_;  // when
  bool ending_ = false;
};

}  // namespace fleetrun::launcher
