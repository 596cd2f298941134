// `fleetrun list`: the jobs of this user that run on this host.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

int run_list_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
