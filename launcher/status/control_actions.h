// What the control socket may do to a job, done through the supervisor's JobControl.
#pragma once

#include <memory>

#include "launcher/run/job_control.h"
#include "launcher/run/server_count.h"
#include "launcher/status/control_server.h"
#include "launcher/status/job_status.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

/// `control` and `board` outlive it. `environment` says where py-spy and gdb are looked for.
///
/// A stop with a grace asks now and kills when that time has passed, or a role's own grace, whichever is
/// first; one with a signal sends it to every process before the roles' own stop signals. A restart kills the
/// process: its role's restart rule does the rest, so the job has to be one
/// that restarts (--max_restart), and it counts as a failure. Without `servers` a resize is refused.
std::unique_ptr<ControlHandler> control_actions(JobControl& control, const StatusBoard& board,
                                                Environ environment,
                                                std::shared_ptr<ServerCount> servers = nullptr);

}  // namespace fleetrun::launcher
