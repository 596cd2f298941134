// What main() of the programs beside fleetrun does around their work:
// fleetrun-data, fleetrun-predict, fleetrun-trace.
#pragma once

#include <functional>
#include <string>

namespace fleetrun {

/// What `work` returns, as exit status; when it throws, 125 and the error on standard error, said by `name`.
/// A reader of its output that goes away is an error of writing, not the end of the process.
int run_tool_main(const std::string& name, const std::function<int()>& work);

}  // namespace fleetrun
