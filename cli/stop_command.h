// fleetrun stop: ends a running job, and waits until it has ended.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Returns the exit status: 0 once the job has ended, whatever its own is. Throws: Error when there is no
/// such job, or it does not answer.
int run_stop_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
