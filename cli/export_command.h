// `fleetrun export [JOB]`: a job's events and curves for TensorBoard and OpenTelemetry, by the package.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Does not return but for --help. Throws: Error for a flag that is wrong, where there is no such job, and
/// where there is no interpreter with the package.
int run_export_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
