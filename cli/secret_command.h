// fleetrun secret --job JOB: what a host needs that takes part in one job and no other.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Prints the job's secret, for a file. Returns 0. Throws: Error where the user's own cannot be read.
int run_secret_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
