// Completion of fleetrun's command line for interactive shells, made from launcher/model/settings.
//
//   fleetrun --completion=bash|zsh|fish     prints the script; the build installs one for each shell
#pragma once

#include <string>
#include <string_view>

namespace fleetrun::cli {

/// The script that teaches `shell` (bash, zsh or fish) fleetrun's flags, their values and its subcommands.
/// Throws: Error(usage) for any other shell.
std::string completion_script(std::string_view shell);

}  // namespace fleetrun::cli
