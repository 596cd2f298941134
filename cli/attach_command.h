// fleetrun attach: looks on at a running job until it ends.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Returns the job's exit status; 128 + a signal that ended the looking on alone.
/// Throws: Error when there is no such job, or it goes without a word.
int run_attach_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
