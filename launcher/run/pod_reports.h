// What a pod of a job of several hosts says to the other hosts,
// and how it tells its own people what they say. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/failure/explainer.h"
#include "launcher/failure/report.h"
#include "launcher/init/init_protocol.h"
#include "launcher/job/job_history.h"
#include "launcher/logs/log_files.h"
#include "launcher/model/job_action.h"
#include "launcher/model/job_event.h"
#include "launcher/model/membership.h"
#include "launcher/model/plan.h"
#include "launcher/model/world.h"
#include "launcher/run/readiness.h"

namespace fleetrun::launcher {

event::WorldBegan world_began(const World& world);

JobEvent news_event(NewsLevel level, const std::string& text);

/// What the job's state is told about a failure that is understood, progress left out.
Explained explained_by(const Explanation& explanation, const Plan& plan, const JobHistory& history);

/// Asks the kernel whether it may be killed at all.
event::Unkillable unkillable(const UnkillableFrame& frame);
event::Warning left_running(const LeftRunningFrame& frame);

/// Is any of these processes still there?
bool any_lives(const std::vector<pid_t>& pids);

/// Its log takes no more of what a process writes.
event::Warning log_dropped(const ProcessSpec& process, const LogFile& log, int error);

/// For the other hosts, without its screen. `report` is this host's own.
NodeFailure node_failure(const Explained& explained, const Report& report, const Plan& plan,
                         const JobHistory& history);

/// Where the processes of a role on other hosts show that they are ready:
/// by their ports, which are all that can be seen from here.
std::vector<ReadySign> signs_of_other_hosts(const Plan& plan, std::size_t role);

/// Where those on this host show it, the descriptors left out.
std::vector<ReadySign> signs_here(const Plan& plan, const std::vector<LogFile>& logs, std::size_t role);

}  // namespace fleetrun::launcher
