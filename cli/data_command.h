// fleetrun data: runs fleetrun-data, a program of its own that reads training data.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Does not return where the program could be executed. Throws: Error(spawn) when there is no fleetrun-data.
int run_data_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
