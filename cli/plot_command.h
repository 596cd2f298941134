// fleetrun plot: runs fleetrun-trace plot.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Becomes fleetrun-trace. Throws: Error(spawn).
int run_plot_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
