// fleetrun doctor: whether this host, or those of a list, are fit for a job,
// and what to do where they are not.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Returns the exit status: 0, or 125 where there is a problem.
/// Throws: Error for lists of hosts that are none.
int run_doctor_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
