// rpc mode: trainers that call each other. They are told the store of rank 0 and their own endpoint; each is
// told only its own, since they exchange them over the store.
#include "launcher/plan.h"

namespace fleetrun::launcher {

void plan_rpc(const JobConfig& config, const HostFacts& facts, Plan& plan) {
  RolePlan& trainers = plan.roles.emplace_back();
  trainers.name = "trainer";
  trainers.restart = restart_scope(config, trainers.name, RestartScope::group);
  trainers.grace = config.grace.of(trainers.name);
  for (std::size_t rank = 0; rank < facts.trainers.size(); ++rank) {
    ProcessSpec process;
    Identity& identity = process.identity;
    identity.role = Role::trainer;
    identity.rank = identity.local_rank = static_cast<int>(rank);
    identity.hosts.reset();
    identity.trainers = facts.trainers;
    identity.master = facts.meeting;
    process.ports = {facts.trainers[rank]};
    if (rank == 0) process.ports.push_back(facts.meeting);
    plan.processes.push_back(std::move(process));
  }
}

}  // namespace fleetrun::launcher
