#include "launcher/plan/plan_ranks.h"

namespace fleetrun::launcher {

PlanRanks plan_ranks(const JobConfig& config, const HostFacts& facts,
                     const std::optional<WorldPlace>& place) {
  PlanRanks ranks;
  if (!place) {
    ranks.trainers = facts.trainers;
    ranks.servers = facts.servers;
    ranks.rendezvous = facts.rendezvous;
    return ranks;
  }
  const World& world = place->world;
  const Member& self = world.members.at(place->node_rank);
  ranks.first_trainer = self.first_trainer;
  ranks.first_server = self.first_server;
  ranks.own_servers = self.offer.servers.size();
  ranks.trainers = world.trainer_endpoints();
  ranks.servers = world.server_endpoints();
  ranks.rendezvous = world.rendezvous();
  ranks.has_rendezvous =
      world.servers() > 0 ? !self.offer.servers.empty() && self.first_server == 0 : place->node_rank == 0;
  if (config.rendezvous.master_by_torchrun && config.master_port)
    ranks.rendezvous = {config.master_addr, *config.master_port};
  ranks.hosts = static_cast<int>(world.members.size());
  ranks.world =
      WorldTag{static_cast<int>(place->node_rank), ranks.hosts, world.generation, world.run, world.hash()};
  return ranks;
}

}  // namespace fleetrun::launcher
