// The words of `fleetrun slurm`, `fleetrun k8s` and `fleetrun trace`:
// their own flags, and a launch as it is written to fleetrun itself.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_flags.h"
#include "launcher/model/job_config.h"

namespace fleetrun::cli {

struct LaunchArguments {
  CommandArguments own;             // flags of the command
  std::vector<std::string> launch;  // fleetrun's flags, the script and its arguments, as they were written
};

/// The command's flags may stand among fleetrun's, up to the script or "--".
/// Throws: Error(usage) as parse_command_arguments does.
LaunchArguments split_launch_arguments(std::string_view command, const std::vector<std::string>& arguments,
                                       std::span<const CommandFlag> known);

struct SchedulerArguments : LaunchArguments {
  launcher::JobConfig config;  // what `launch` asks for, in an empty environment; not filled in for --help
};

/// Throws: Error(usage) as split_launch_arguments, parse_command_line and make_job_config do, without a
/// script, and where the launch names its hosts or its rendezvous address itself: those are `engine`'s to
/// say.
SchedulerArguments parse_scheduler_arguments(std::string_view command, std::string_view engine,
                                             const std::vector<std::string>& arguments,
                                             std::span<const CommandFlag> known);

/// A name made of the script's: "/a/Train_it.py" → "train-it".
/// At most `longest` of a-z, 0-9 and '-', a letter first.
std::string name_of_script(std::string_view script, std::size_t longest);

}  // namespace fleetrun::cli
