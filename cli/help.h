// `fleetrun --help`, `fleetrun help COMMAND|FLAG` and `fleetrun version`.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

std::string help_text();

/// Throws: Error(usage) for a word that is neither a command nor a flag.
int run_help_command(const std::vector<std::string>& arguments, const Environ& environment);

int run_version_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
