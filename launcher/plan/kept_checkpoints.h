// What an earlier run has left where this one's parameter servers are to keep what they have.
//
// Servers look themselves, and know more (ps/server/server_durable.cc);
// here it is said once, before anything is started.
#pragma once

#include "launcher/model/plan.h"

namespace fleetrun::launcher {

/// Throws: Error(config) naming the directory, where a server of this host would refuse what is in it, or
/// that nothing is.
void check_kept_checkpoints(const Plan& plan);

}  // namespace fleetrun::launcher
