// fleetrun top: a running job as a table that is kept up to date.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Returns the exit status. Throws: Error when there is no such job, or it does not answer.
int run_top_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
