// `fleetrun agent`: the part of a launch on another host (launcher/remote/agent).
// For launchers, not for people.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Returns the exit status. Throws: Error.
int run_agent_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
