// fleetrun logs: shows the logs of a job that runs or ran.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Throws: Error(usage) for wrong flags, Error(host) when there are no such logs.
int run_logs_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
