// The commands of fleetrun-trace.
#pragma once

#include <string>
#include <vector>

namespace fleetrun::trace {

/// `arguments`: merge or plot, and its words. Returns the exit status. Throws: Error.
int run_trace(const std::vector<std::string>& arguments);

}  // namespace fleetrun::trace
