#include "launcher/plan/plan_roles.h"

#include <algorithm>

#include "launcher/config/job_file_roles.h"
#include "launcher/host/find_devices.h"
#include "launcher/plan/make_plan.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

/// What a file says of a role, over what the mode has for it.
void describe(const JobFileRole& role, const JobConfig& config, RolePlan& plan) {
  plan.name = role.name;
  if (role.kind == RoleKind::plain) plan.restart = RestartScope::group;
  plan.serves = role.serves.value_or(role.kind == RoleKind::server);
  plan.restart = restart_scope(config, role.name, role.restart.value_or(plan.restart));
  const bool flag = config.grace.roles.contains(role.name);
  plan.grace = role.grace && !flag ? *role.grace : config.grace.of(role.name);
  if (role.stop_signal) plan.stop_signal = *role.stop_signal;
  if (role.ready) plan.ready = *role.ready;
}

/// The processes of a plain role.
std::vector<ProcessSpec> plain_processes(const JobFileRole& role, const HostFacts& facts) {
  std::vector<ProcessSpec> processes;
  const auto endpoints = facts.endpoints.find(role.name);
  for (int rank = 0; rank < count_of(role); ++rank) {
    ProcessSpec process;
    Identity& identity = process.identity;
    identity.mode = Mode::own;
    identity.own_name = role.name;
    identity.size = count_of(role);
    identity.rank = identity.local_rank = rank;
    if (endpoints != facts.endpoints.end()) {
      identity.trainers = endpoints->second;
      process.ports = {endpoints->second[static_cast<std::size_t>(rank)]};
    }
    processes.push_back(std::move(process));
  }
  return processes;
}

/// Devices of a role to which no variable of Paddle's tells indices: they are shown by the variable itself.
void show_devices(const JobFileRole& role, const HostFacts& facts, std::vector<ProcessSpec>& processes) {
  if (!role.devices) return;
  const DevicePlan plan = plan_devices({role.devices, count_of(role)}, facts.devices);
  for (std::size_t i = 0; i < plan.processes.size(); ++i) {
    const ProcessDevices& own = plan.processes[i];
    std::vector<std::string> tokens;
    const std::vector<std::string> shown = split(own.visible, ',');
    for (const std::string& index : own.indices) {
      const auto place = static_cast<std::size_t>(parse_integer(index).value_or(0));
      tokens.push_back(own.visible.empty() ? facts.devices.tokens[place] : shown[place]);
    }
    processes[i].environment.set(facts.devices.variable, join(tokens, ","));
    processes[i].device_places = own.pci;
  }
}

}  // namespace

void plan_roles(const JobConfig& config, const HostFacts& facts, const PlanRanks& ranks, Plan& plan) {
  const JobFile& file = *config.file;
  Plan modes;  // what the flags of the same meaning would give
  modes.log_dir = plan.log_dir;
  modes.pod_name = plan.pod_name;
  if (config.mode == Mode::ps) plan_ps(config, facts, ranks, modes);
  if (config.mode == Mode::collective) plan_collective(config, facts, ranks, modes);

  const std::vector<std::size_t> order = starting_order(file);
  std::vector<std::size_t> place(file.roles.size());  // in plan.roles
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  for (const std::size_t i : order) {
    const JobFileRole& role = file.roles[i];
    RolePlan described;
    std::vector<ProcessSpec> processes;
    const std::string kind = role.kind == RoleKind::server ? "server" : "trainer";
    for (std::size_t r = 0; role.kind != RoleKind::plain && r < modes.roles.size(); ++r) {
      if (modes.roles[r].name != kind) continue;
      described = modes.roles[r];
      for (const std::size_t p : processes_of(modes, r)) processes.push_back(modes.processes[p]);
    }
    if (role.kind == RoleKind::plain) processes = plain_processes(role, facts);
    if (role.kind != RoleKind::trainer || config.mode == Mode::ps) show_devices(role, facts, processes);
    describe(role, config, described);
    described.after.clear();
    for (const std::size_t first : roles_before(file, role)) described.after.push_back(place[first]);
    plan.roles.push_back(std::move(described));
    for (ProcessSpec& process : processes) {
      process.role = place[i];
      if (role.kind != RoleKind::plain && role.name != kind) process.identity.own_name = role.name;
      process.cwd = role.cwd;
      for (const auto& [name, value] : role.environment) process.environment.set(name, value);
      plan.processes.push_back(std::move(process));
    }
  }
  if (std::all_of(plan.roles.begin(), plan.roles.end(), [](const RolePlan& role) { return role.serves; }))
    throw Error(ErrorKind::config, "every role serves, so that the job would end at once",
                "leave serves out of the role whose end is the job's");
}

}  // namespace fleetrun::launcher
