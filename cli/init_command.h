// fleetrun init: writes a job file, asking on a terminal for what no flag says.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Returns 0. Throws: Error(usage) for what cannot be in a job file, Error(host) where it cannot be written.
int run_init_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
