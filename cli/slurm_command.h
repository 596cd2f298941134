// `fleetrun slurm`: a launch as a batch script for Slurm, printed or submitted.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Throws: Error.
int run_slurm_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
