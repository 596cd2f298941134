// The commands of fleetrun-data: `fleetrun data NAME …` for one of the names that help shows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::dataset {

/// Writes all of `text` to standard output; false when nobody reads it any more.
bool print_text(std::string_view text);

/// Runs the command that `arguments` begin with, or shows help. Throws: Error.
int run_tool(const std::vector<std::string>& arguments);

}  // namespace fleetrun::dataset
