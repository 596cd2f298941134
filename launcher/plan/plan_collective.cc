// Collective mode: trainers only, one per device, or as many as asked for on the CPU. A trainer that is alone
// gets all devices. Rank 0 opens the job's store at the rendezvous endpoint, so that port is held for it.
#include "launcher/plan/make_plan.h"

#include "launcher/host/probe_host.h"
#include "launcher/plan/plan_ranks.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

/// Devices of a plug-in, as Paddle's launcher tells of them.
void tell_custom(const std::string& backend, ProcessSpec& process) {
  Identity& identity = process.identity;
  process.environment.set("FLAGS_selected_" + backend + "s", join(identity.devices, ","));
  process.environment.set("PADDLE_DISTRI_BACKEND", "xccl");
  process.environment.set("PADDLE_XCCL_BACKEND", backend);
  identity.devices.clear();  // fleetrun's own kernels know nothing of them
}

}  // namespace

void plan_collective(const JobConfig& config, const HostFacts& facts, const PlanRanks& ranks, Plan& plan) {
  RolePlan& trainers = plan.roles.emplace_back();
  trainers.name = "trainer";
  trainers.restart = restart_scope(config, trainers.name, RestartScope::group);
  trainers.grace = config.grace.of(trainers.name);
  const DevicePlan devices = device_plan(config, facts);
  plan.notes.insert(plan.notes.end(), devices.notes.begin(), devices.notes.end());
  for (int local_rank = 0; local_rank < devices.trainers; ++local_rank) {
    ProcessSpec process;
    Identity& identity = process.identity;
    identity.role = Role::trainer;
    identity.rank = ranks.first_trainer + local_rank;
    identity.local_rank = local_rank;
    identity.local_size = devices.trainers;
    identity.hosts = ranks.hosts;
    identity.world = ranks.world;
    identity.trainers = ranks.trainers;
    identity.master = ranks.rendezvous;
    identity.auto_cluster = config.auto_cluster;
    identity.torch = {config.role_name, config.run_id, config.signals_to_handle,
                      config.max_restart.value_or(0)};
    for (const std::string& setting : facts.socket_interfaces) {
      const std::size_t sign = setting.find('=');
      process.environment.set(setting.substr(0, sign), setting.substr(sign + 1));
    }
    if (!facts.has_nccl_error_handling) process.environment.set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
    if (!devices.processes.empty()) {
      const ProcessDevices& own = devices.processes[static_cast<std::size_t>(local_rank)];
      identity.devices = own.indices;
      identity.on_xpus = facts.devices.kind == DeviceKind::xpu;
      process.device_places = own.pci;
      if (!own.visible.empty()) process.environment.set(facts.devices.variable, own.visible);
      if (facts.devices.kind == DeviceKind::custom) tell_custom(facts.devices.backend, process);
    }
    if (!config.auto_parallel.empty()) {
      process.environment.set("PADDLE_AUTO_PARALLEL_CONFIG", config.auto_parallel);
      process.environment.set("PADDLE_AUTO_PARALLEL_STAGE", "run");
    }
    process.ports = {facts.trainers[static_cast<std::size_t>(local_rank)]};
    if (local_rank == 0 && ranks.has_rendezvous) process.ports.push_back(facts.rendezvous);
    plan.processes.push_back(std::move(process));
  }
}

}  // namespace fleetrun::launcher
