// Runs a plan: the only owner of time, descriptors and processes. It turns what happens into events for
// JobState and does the actions that come back. One thread, one loop; blocks until the job is over.
#pragma once

#include <string>
#include <vector>

#include "launcher/job_state.h"
#include "launcher/log_files.h"
#include "launcher/log_view.h"
#include "launcher/plan.h"
#include "launcher/port_lease.h"
#include "launcher/process_spawner.h"

namespace fleetrun::launcher {

/// Milestones, for whoever tells the user about them. Nothing here may throw.
class JobListener {
 public:
  virtual ~JobListener() = default;
  virtual void on_contained(const std::string& level) = 0;
  virtual void on_running(std::size_t processes) = 0;
  virtual void on_warning(const std::string& text) = 0;
  virtual void on_signal(int number, bool again) = 0;
};

struct RunSettings {
  InitSettings init;
  ViewSettings view;                  // how logs are shown,
  std::vector<ViewedProcess> viewed;  // and whose, by index
  int input = 0;                      // standard input of a process that is alone; -1: none
};

/// Runs `plan` to its end. `logs` are in the plan's order; `leases` are released process by process.
/// Throws: Error(spawn) when fleetrun-init cannot be started.
JobState run_job(const Plan& plan, const std::vector<LogFile>& logs, PortLeases& leases,
                 const RunSettings& settings, JobListener& listener);

}  // namespace fleetrun::launcher
