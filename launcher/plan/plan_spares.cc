#include "launcher/plan/plan_spares.h"

#include <algorithm>

#include "launcher/model/job_config.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

/// By rank.
std::vector<std::size_t> replaceable_processes(const Plan& plan) {
  const auto standby = standby_role(plan.roles);
  return standby ? processes_of(plan, *plan.roles[*standby].stands_by_for) : std::vector<std::size_t>();
}

}  // namespace

void plan_spares(const JobConfig& config, Plan& plan) {
  if (!config.replaces_failed) return;
  const auto first =
      std::find_if(plan.processes.begin(), plan.processes.end(),
                   [](const ProcessSpec& process) { return process.identity.role == Role::trainer; });
  const std::size_t role = first->role;
  const ProcessSpec trainer = *first;
  if (processes_of(plan, role).size() < 2)
    throw Error(ErrorKind::config,
                "--on_failure=replace, and one trainer: a process in its place has nobody to get its state "
                "from",
                "ask for at least two, with --nproc_per_node");
  RolePlan spares = plan.roles[role];
  spares.name = "spare";
  spares.serves = true;
  spares.after.clear();
  spares.stands_by_for = role;
  plan.roles.push_back(std::move(spares));
  for (int number = 0; number < config.spares; ++number) {
    ProcessSpec& spare = plan.processes.emplace_back(trainer);
    spare.role = plan.roles.size() - 1;
    spare.ports.clear();
    spare.own_ports.clear();
    spare.cpus.clear();
    spare.memory_nodes.clear();
  }
}

void name_spare(std::size_t number, ProcessSpec& process) {
  process.name = "spare " + std::to_string(number);
  process.log_name = "sparelog." + std::to_string(number);
  process.log_alias =
      process.identity.job_id + "." + process.identity.pod_name + ".spare." + std::to_string(number) + ".log";
}

Environ rank_environment(const Plan& plan, std::size_t rank) {
  const std::vector<std::size_t> trainers = replaceable_processes(plan);
  const Environ& own = plan.processes[trainers.at(rank)].environment;
  Environ environ;
  for (const auto& variable : own.values()) {
    const bool differs = std::any_of(trainers.begin(), trainers.end(), [&](std::size_t index) {
      const std::string* other = plan.processes[index].environment.find(variable.first);
      return !other || *other != variable.second;
    });
    if (differs) environ.set(variable.first, variable.second);
  }
  return environ;
}

std::vector<std::string> standby_environment(const Plan& plan) {
  std::vector<std::string> entries = {"FLEETRUN_STANDBY=1"};
  for (std::size_t rank = 0; rank < replaceable_processes(plan).size(); ++rank) {
    const Environ own = rank_environment(plan, rank);
    for (const auto& [name, value] : own.values())
      if (std::find(entries.begin(), entries.end(), name) == entries.end()) entries.push_back(name);
  }
  return entries;
}

}  // namespace fleetrun::launcher
