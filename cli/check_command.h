// fleetrun check: runs the Python package's check of scripts, in the interpreter that a launch would take;
// --python=PATH, as the first word, names another.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Does not return: the exit status is the check's. Throws: Error(spawn) where there is no interpreter or it
/// cannot be executed, Error(config) for one without the package.
int run_check_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
