// Makes the plan of a collective job that of torchrun: where output goes, and the variables and arguments
// that differ. Pure.
#pragma once

#include "launcher/model/host_facts.h"
#include "launcher/model/job_config.h"
#include "launcher/model/plan.h"

namespace fleetrun::launcher {

/// Where the output of the process of `local_rank` goes.
OutputPlan plan_output(const TorchrunSettings& torchrun, const Identity& identity, const std::string& host);

/// `config.torchrun` is set, and `plan` is otherwise complete.
void follow_torchrun(const JobConfig& config, const HostFacts& facts, Plan& plan);

}  // namespace fleetrun::launcher
