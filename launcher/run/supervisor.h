// Runs a plan: the only owner of time, descriptors and processes. It turns what happens into events for
// JobState and does the actions that come back. One thread, one loop; blocks until the job is over.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cluster/world_link.h"
#include "launcher/failure/report.h"
#include "launcher/host/port_lease.h"
#include "launcher/job/job_history.h"
#include "launcher/job/job_state.h"
#include "launcher/logs/job_view.h"
#include "launcher/logs/log_files.h"
#include "launcher/logs/log_through.h"
#include "launcher/model/job_event.h"
#include "launcher/model/plan.h"
#include "launcher/model/signal_map.h"
#include "launcher/plan/attempt_overlay.h"
#include "launcher/run/job_control.h"
#include "launcher/spawn/process_spawner.h"

namespace fleetrun::launcher {

/// What a pod needs in a job of several hosts.
struct WorldSettings {
  WorldLink* link = nullptr;  // borrowed; nullptr: the job is on this host alone
  World world;                // the first
  /// Leases ports anew, for the world that comes.
  std::function<PodOffer()> renew_offer;
  /// The world in which `replan` plans.
  std::function<void(const World&, std::size_t node_rank)> adopt;
  /// The screen about a failure here, for the other hosts.
  std::function<std::string(const Report&, const Plan&, const JobHistory&, const std::vector<LogFile>&)>
      failure_screen;
};

struct RunSettings {
  WorldSettings world;
  InitSettings init;
  SignalMap signals = default_signal_map();
  bool hangup_ignored = false;
  std::vector<JobViewPart> views;  // what is shown of the logs
  std::optional<LogThroughSettings>
      log_through;         // a writer between processes and logs; `on_lost` is filled in
  std::uint64_t seed = 1;  // of the backoff's jitter
  RunValues values;
  /// The plan for a further attempt: the same processes, ports leased anew.
  std::function<Plan(int attempt)> replan;
  std::vector<JobObserver*> observers;  // borrowed
  std::vector<MakeJobPart> parts;       // told after the observers, in this order
};

struct JobResult {
  JobState state;
  Plan plan;                   // of the last attempt
  std::vector<LogFile> logs;   // of each process's last attempt, in the plan's order
  std::optional<Cause> cause;  // of state.failure()
  JobHistory history;
  std::optional<JobEnd> end;  // as the hosts of the job know it
};

/// Runs `plan` to its end. `logs` are those of attempt 0, in the plan's order; `leases` are released process
/// by process. Throws: Error(spawn) when fleetrun-init cannot be started,
/// Error(host) when a further attempt cannot be prepared.
JobResult run_job(Plan plan, std::vector<LogFile> logs, PortLeases& leases, RunSettings settings);

}  // namespace fleetrun::launcher
