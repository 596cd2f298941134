// fleetrun trace: a launch whose processes draw what they do, joined into one timeline at its end.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Returns the job's exit status; of a job that went well, that of joining its timelines. Throws: Error.
int run_trace_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
