#include "cli/commands.h"

#include <algorithm>

#include "cli/logs_command.h"

namespace fleetrun::cli {
namespace {

constexpr Command kCommands[] = {
    {"logs", "show the logs of a job", run_logs_command},
};

}  // namespace

std::span<const Command> commands() noexcept {
  return kCommands;
}

const Command* find_command(const std::vector<std::string>& arguments) noexcept {
  if (arguments.empty()) return nullptr;
  const auto found = std::find_if(std::begin(kCommands), std::end(kCommands),
                                  [&](const Command& command) { return command.name == arguments.front(); });
  return found == std::end(kCommands) ? nullptr : found;
}

}  // namespace fleetrun::cli
