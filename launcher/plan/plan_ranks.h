// Where a host's own processes stand in their job: alone, or among those of the other hosts.
// Pure; for the plans of the modes.
#pragma once

#include <cstddef>
#include <optional>

#include "launcher/model/host_facts.h"
#include "launcher/model/job_config.h"
#include "launcher/model/world.h"

namespace fleetrun::launcher {

struct PlanRanks {
  int first_trainer = 0, first_server = 0;
  EndpointList trainers, servers;  // of the whole job, by rank
  Endpoint rendezvous;
  std::optional<std::size_t> own_servers;  // where this host serves fewer than it could
  bool has_rendezvous = true;              // this host serves it, or rather one of its processes
  std::optional<WorldTag> world;
  int hosts = 1;
};

PlanRanks plan_ranks(const JobConfig& config, const HostFacts& facts, const std::optional<WorldPlace>& place);

}  // namespace fleetrun::launcher
