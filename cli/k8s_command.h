// `fleetrun k8s`: a launch as manifests for Kubernetes.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Throws: Error.
int run_k8s_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
