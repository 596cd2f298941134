// The roles of a job file, planned: what the modes know of servers and trainers, the file's word over it, and
// roles of other names beside them. Pure.
#pragma once

#include "launcher/model/host_facts.h"
#include "launcher/model/job_config.h"
#include "launcher/model/plan.h"
#include "launcher/plan/plan_ranks.h"

namespace fleetrun::launcher {

/// Fills `plan.roles` and `plan.processes` for `config.file`. Roles are in the order in which they can start:
/// each behind those that it comes after, otherwise as in the file.
/// Throws: Error(config) when roles wait for each other, or for nobody.
void plan_roles(const JobConfig& config, const HostFacts& facts, const PlanRanks& ranks, Plan& plan);

}  // namespace fleetrun::launcher
