// Heartbeats, the watch for hangs, and failures on purpose, as one part of a running job: injected failures
// may wait for a step that a heartbeat reports.
#pragma once

#include "launcher/model/job_config.h"
#include "launcher/run/job_control.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

/// Throws: Error(config) for an injection into a process that the plan does not have.
void check_injections(const JobConfig& config, const Plan& plan);

/// The part for this configuration. It makes nothing where neither hangs nor restarts nor injections are
/// asked for. The injections have been checked against the plan.
MakeJobPart job_health(const JobConfig& config, const Environ& environment);

}  // namespace fleetrun::launcher
