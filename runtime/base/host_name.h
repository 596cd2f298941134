// What this host is called.
#pragma once

#include <string>

namespace fleetrun {

/// As the kernel has it; "" when it has none.
std::string host_name();

}  // namespace fleetrun
