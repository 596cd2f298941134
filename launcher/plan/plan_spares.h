// Processes that stand by to take the place of a trainer that fails (--on_failure=replace, --spares): the
// trainers' program, without a rank until they are given one.
#pragma once

#include <string>
#include <vector>

#include "launcher/model/plan.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

struct JobConfig;

/// Adds their role, and copies of a trainer. Throws: Error(config) where there is only one trainer.
void plan_spares(const JobConfig& config, Plan& plan);

/// Gives a process that stands by its name and its log, `number` being its place among those.
void name_spare(std::size_t number, ProcessSpec& process);

/// The variables in which the trainers differ, with those of the trainer with this rank.
Environ rank_environment(const Plan& plan, std::size_t rank);

/// What a process that stands by gets over its own environment: NAME=VALUE, or NAME for what it must not
/// have, which is all that tells a rank.
std::vector<std::string> standby_environment(const Plan& plan);

}  // namespace fleetrun::launcher
