// What a pod of a job of several hosts says to the other hosts,
// and how it tells its own people what they say. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/failure/report.h"
#include "launcher/job/job_history.h"
#include "launcher/model/job_action.h"
#include "launcher/model/job_event.h"
#include "launcher/model/membership.h"
#include "launcher/model/plan.h"
#include "launcher/model/world.h"
#include "launcher/run/readiness.h"

namespace fleetrun::launcher {

event::WorldBegan world_began(const World& world);

JobEvent news_event(NewsLevel level, const std::string& text);

/// For the other hosts, without its screen. `report` is this host's own.
NodeFailure node_failure(const Explained& explained, const Report& report, const Plan& plan,
                         const JobHistory& history);

/// Where the processes of a role on other hosts show that they are ready:
/// by their ports, which are all that can be seen from here.
std::vector<ReadySign> signs_of_other_hosts(const Plan& plan, std::size_t role);

}  // namespace fleetrun::launcher
