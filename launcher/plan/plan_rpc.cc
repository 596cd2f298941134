// rpc mode: trainers that call each other. They are told the store of rank 0 and their own endpoint; each is
// told only its own, since they exchange them over the store.
#include "launcher/plan/make_plan.h"
#include "launcher/plan/plan_ranks.h"

namespace fleetrun::launcher {

void plan_rpc(const JobConfig& config, const HostFacts& facts, const PlanRanks& ranks, Plan& plan) {
  RolePlan& trainers = plan.roles.emplace_back();
  trainers.name = "trainer";
  trainers.restart = restart_scope(config, trainers.name, RestartScope::group);
  trainers.grace = config.grace.of(trainers.name);
  for (std::size_t local_rank = 0; local_rank < facts.trainers.size(); ++local_rank) {
    ProcessSpec process;
    Identity& identity = process.identity;
    identity.role = Role::trainer;
    identity.rank = ranks.first_trainer + static_cast<int>(local_rank);
    identity.local_rank = static_cast<int>(local_rank);
    identity.hosts.reset();
    identity.world = ranks.world;
    identity.trainers = ranks.trainers;
    identity.master = ranks.rendezvous;
    process.ports = {facts.trainers[local_rank]};
    if (local_rank == 0 && ranks.has_rendezvous) process.ports.push_back(facts.rendezvous);
    plan.processes.push_back(std::move(process));
  }
}

}  // namespace fleetrun::launcher
