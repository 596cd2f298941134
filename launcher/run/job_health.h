// Heartbeats, the watch for hangs, and failures on purpose, as one part of a running job: injected failures
// may wait for a step that a heartbeat reports.
#pragma once

#include <memory>

#include "launcher/model/job_config.h"
#include "launcher/run/heartbeat.h"
#include "launcher/run/job_control.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

/// Throws: Error(config) for an injection into a process that the plan does not have.
void check_injections(const JobConfig& config, const Plan& plan);

/// The part for this configuration. It makes nothing where neither hangs nor restarts nor injections nor
/// metrics are asked for. The injections have been checked against the plan.
/// While it lives, `heartbeats` reads what processes say.
MakeJobPart job_health(const JobConfig& config, const Environ& environment,
                       std::shared_ptr<HeartbeatReader> heartbeats);

}  // namespace fleetrun::launcher
