// How a job is doing: the events of the job, folded into a table of its processes.
//
//   process    means                                 job         means
//   waiting    not started yet in this attempt       starting    not every process has been started
//   running    started, and not asked to end         running     every process was started
//   stopping   asked to end, still alive             stopping    what lives was asked to end, for good
//   ended      ended well, or after it was asked to  restarting  what lives ends, or a backoff passes, and
//                                                                then it is begun again
//   failed     ended by itself, and not well         ended       the job is over
//   not_started  could not be started
//
// The board is told about every event and costs next to nothing; what costs something (memory and CPU from
// /proc, the last lines of the logs) is read when somebody asks,
// by add_usage() and add_last_lines(). One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/host/resource_usage.h"
#include "launcher/model/job_event.h"
#include "launcher/model/plan.h"
#include "launcher/run/heartbeat.h"
#include "launcher/status/server_metrics.h"
#include "runtime/base/exit_reason.h"

namespace fleetrun::launcher {

enum class ProcessState { waiting, running, stopping, ended, failed, not_started };
enum class JobPhase { starting, running, stopping, restarting, ended };

std::string_view to_string(ProcessState state) noexcept;
bool is_alive(ProcessState state) noexcept;
std::string_view to_string(JobPhase phase) noexcept;

struct ProcessStatus {
  std::string role, name;  // "trainer", "trainer 1"
  int rank = 0;
  pid_t pid = -1;  // as the host sees it; -1 before the first start
  ProcessState state = ProcessState::waiting;
  int attempt = 0;
  int starts = 0;               // how often it was started
  std::int64_t started_at = 0;  // CLOCK_MONOTONIC, ns; 0: not yet
  std::optional<std::int64_t> ended_at;
  std::optional<ExitReason> exit;             // of its last end
  std::string cause;                          // of its last failure, in words
  std::string log;                            // path
  std::optional<ResourceUsage> usage;         // of a living process, by add_usage()
  std::optional<std::string> last_line;       // by add_last_lines()
  std::optional<std::uint64_t> log_bytes;     // likewise: how long the log is
  std::optional<ServerMetrics> metrics = {};  // of a living parameter server, by add_metrics()
  Heartbeat heartbeat = {};                   // of a living process, for metrics alone

  bool operator==(const ProcessStatus&) const = default;
};

struct RestartStatus {
  int next_attempt = 0;
  RestartScope scope = RestartScope::group;
  std::string process;  // that failed
  FailureKind kind = FailureKind::crash;
  std::string cause, why;

  bool operator==(const RestartStatus&) const = default;
};

struct JobStatus {
  std::string job_id, pod, mode;
  std::string containment, cgroup;  // empty before the pod is held
  std::string log_dir;
  pid_t fleetrun_pid = -1, init_pid = -1;
  JobPhase phase = JobPhase::starting;
  std::string phase_reason;  // of stopping and restarting
  int attempt = 0;
  std::int64_t began_at = 0, now = 0;  // CLOCK_MONOTONIC, ns
  std::vector<ProcessStatus> processes;
  std::vector<RestartStatus> restarts;
  std::uint64_t generation = 0;         // of the world, in a job of several hosts; 0: it is on this one alone
  std::vector<std::string> hosts = {};  // of that world, by node rank
  std::vector<std::string> servers = {};  // endpoints of all parameter servers, by rank
  bool logs_truncated = false;            // a cap or a full disk has cost lines
  std::optional<int> exit_status;

  bool operator==(const JobStatus&) const = default;
};

/// Keeps the table. `plan` outlives it.
class StatusBoard final : public JobObserver {
 public:
  StatusBoard(const Plan& plan, std::int64_t began_at);

  void on_event(const JobEvent& event) override;

  /// A copy of the table. `now` is CLOCK_MONOTONIC in nanoseconds.
  JobStatus status(std::int64_t now) const;
  JobPhase phase() const noexcept { return phase_; }

 private:
  struct Live {
    pid_t pid = -1;
    ProcessState state = ProcessState::waiting;
    int attempt = 0, starts = 0;
    std::int64_t started_at = 0;
    std::optional<std::int64_t> ended_at;
    std::optional<ExitReason> exit;
    Cause cause;
  };

  void fold(const event::Contained& contained);
  void fold(const event::AttemptBegan& began);
  void fold(const event::ProcessStarted& started);
  void fold(const event::ProcessExited& exited);
  void fold(const event::ProcessNotStarted& failed);
  void fold(const event::StopBegan& stop);
  void fold(const event::FailureExplained& explained);
  void fold(const event::RestartDecided& decided);
  void fold(const event::LogsTruncated&) { logs_truncated_ = true; }
  void fold(const event::WorldBegan& began);
  void fold(const event::WorldEnded& ended);
  void fold(const event::JobEnded& ended);
  template <class Other>
  void fold(const Other&) {}
  void become(Live& process, ProcessState state);

  const Plan& plan_;
  std::vector<Live> live_;
  std::size_t waiting_;  // of live_
  event::Contained contained_;
  JobPhase phase_ = JobPhase::starting;
  std::string phase_reason_;
  int attempt_ = 0;
  std::int64_t began_at_;
  std::vector<RestartStatus> restarts_;
  std::optional<int> exit_status_;
  std::uint64_t generation_ = 0;
  std::vector<std::string> hosts_, servers_;
  bool logs_truncated_ = false;
};

/// Reads what each living process uses now.
void add_usage(JobStatus& status, const std::string& proc = "/proc");

/// Reads what each parameter server of this host says of itself, in files below `directory`.
void add_metrics(JobStatus& status, const std::string& directory);

/// Reads the last line of each log, and how long it is.
void add_last_lines(JobStatus& status);

/// The last line of `tail` that shows something, as a terminal would show it: what a progress bar has
/// overwritten (\r) is gone, and so are escape sequences and control bytes;
/// broken UTF-8 is '?'; at most `max` bytes. Pure.
std::string last_shown_line(std::string_view tail, std::size_t max = 200);

}  // namespace fleetrun::launcher
