// The commands of fleetrun-data: `fleetrun data NAME …` for a NAME in the table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::dataset {

struct ToolCommand {
  std::string_view name;
  std::string_view summary;  // one line of the help
  std::string (*help)();     // the whole text
  /// Returns the exit status. `arguments` are those after the name. Throws: Error.
  int (*run)(const std::vector<std::string>& arguments);
};

/// In the order of the help.
std::span<const ToolCommand> tool_commands() noexcept;

/// Writes all of `text` to standard output; false when nobody reads it any more.
bool print_text(std::string_view text);

/// Runs the command that `arguments` begin with, or shows help. Throws: Error.
int run_tool(const std::vector<std::string>& arguments);

}  // namespace fleetrun::dataset
