// A plan of a few trainers (and servers), for tests of what watches a job.
#pragma once

#include <string>

#include "launcher/model/plan.h"

namespace fleetrun::tests {

/// Job "default", pod "abcdef": `servers` servers, then `trainers` trainers, with logs in `log_dir`.
inline launcher::Plan job_plan(int trainers, int servers = 0, const std::string& log_dir = "/nowhere/log") {
  launcher::Plan plan;
  plan.mode = servers > 0 ? Mode::ps : Mode::collective;
  plan.job_id = "default";
  plan.pod_name = "abcdef";
  plan.log_dir = plan.log_dir_shown = log_dir;
  const auto add = [&plan](Role role, const char* name, const char* log, int count) {
    if (count == 0) return;
    launcher::RolePlan& planned = plan.roles.emplace_back();
    planned.name = name;
    planned.serves = role == Role::server;
    for (int rank = 0; rank < count; ++rank) {
      launcher::ProcessSpec& process = plan.processes.emplace_back();
      process.role = plan.roles.size() - 1;
      process.name = std::string(name) + " " + std::to_string(rank);
      process.identity.mode = plan.mode;
      process.identity.role = role;
      process.identity.rank = process.identity.local_rank = rank;
      process.log_name = std::string(log) + "." + std::to_string(rank);
    }
  };
  add(Role::server, "server", "serverlog", servers);
  add(Role::trainer, "trainer", "workerlog", trainers);
  return plan;
}

}  // namespace fleetrun::tests
