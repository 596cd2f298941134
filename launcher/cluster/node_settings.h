// From a job's configuration to the settings of its coordinator and of a member. Pure.
#pragma once

#include "launcher/cluster/coordinator_core.h"
#include "launcher/cluster/member_core.h"
#include "launcher/model/job_config.h"
#include "launcher/model/membership.h"

namespace fleetrun::launcher {

/// The silence after which a host of this job is lost. Where the job ends at a loss, nobody could take the
/// host's place: it is waited for as long as at the start.
std::chrono::milliseconds lost_after(const JobConfig& config);

/// Whether members take the place of a coordinator that is lost by themselves.
bool has_takeover(const Rendezvous& rendezvous) noexcept;

/// Of a coordinator that is not a node; `run`, `seed`, `node` and `own` are left to its owner.
CoordinatorSettings coordinator_settings(const JobConfig& config);

/// Without the endpoints.
MemberSettings member_settings(const JobConfig& config, const NodeSelf& self);

}  // namespace fleetrun::launcher
