// fleetrun predict: runs fleetrun-predict.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Becomes fleetrun-predict. Throws: Error(spawn).
int run_predict_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
