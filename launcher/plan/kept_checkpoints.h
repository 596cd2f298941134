// What an earlier run has left where this one's parameter servers are to keep what they have.
//
// Servers look themselves, and know more (ps/server/server_durable.cc);
// here it is said once, before anything is started.
#pragma once

#include <string>

#include "launcher/model/plan.h"

namespace fleetrun::launcher {

/// Throws: Error(config) naming the directory, where a server of this host would refuse what is in it, or
/// that nothing is, or where one goes on from it and another does not.
void check_kept_checkpoints(const Plan& plan);

/// With what tables the servers begin that are started again together with all others. Empty without servers.
std::string tables_of_attempt(const Plan& plan, int attempt);

}  // namespace fleetrun::launcher
