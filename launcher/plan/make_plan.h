// Decides what is started, and how. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/model/host_facts.h"
#include "launcher/model/job_config.h"
#include "launcher/model/plan.h"
#include "launcher/model/program.h"
#include "launcher/model/world.h"

namespace fleetrun::launcher {

struct PlanRanks;

/// `programs` holds the one that all processes run, or, for a job file, its roles' in the file's order.
/// `place`: in a job of several hosts. The facts are this host's own.
/// Throws: Error(config) when the facts do not fit the configuration.
Plan make_plan(const JobConfig& config, const std::vector<Program>& programs, const HostFacts& facts,
               const std::optional<WorldPlace>& place = {});
Plan make_plan(const JobConfig& config, const Program& program, const HostFacts& facts,
               const std::optional<WorldPlace>& place = {});

// The modes, each in a file of its own. They fill `plan.processes` with identities, logs and ports.
void plan_collective(const JobConfig& config, const HostFacts& facts, const PlanRanks& ranks, Plan& plan);
void plan_ps(const JobConfig& config, const HostFacts& facts, const PlanRanks& ranks, Plan& plan);
void plan_rpc(const JobConfig& config, const HostFacts& facts, const PlanRanks& ranks, Plan& plan);

}  // namespace fleetrun::launcher
