// fleetrun status: how a running job is doing, once.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Returns the exit status. Throws: Error when there is no such job, or it does not answer.
int run_status_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
