// The words of `fleetrun slurm` and `fleetrun k8s`: their own flags, and a launch as it is written to fleetrun itself.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_flags.h"
#include "launcher/job_config.h"

namespace fleetrun::cli {

struct EngineWords {
  CommandWords own;                 // flags of the command
  std::vector<std::string> launch;  // fleetrun's flags, the script and its arguments, as they were written
  launcher::JobConfig config;  // what `launch` asks for, in an empty environment; not filled in for --help
};

/// The command's flags may stand among fleetrun's, up to the script.
/// Throws: Error(usage) as parse_command_words, parse_command_line and make_job_config do, without a script, and where
/// the launch names its hosts or its meeting point itself: those are `engine`'s to say.
EngineWords parse_engine_words(std::string_view command, std::string_view engine,
                               const std::vector<std::string>& arguments, std::span<const CommandFlag> known);

/// A name made of the script's: "/a/Train_it.py" → "train-it". At most `longest` of a-z, 0-9 and '-', a letter first.
std::string name_of_script(std::string_view script, std::size_t longest);

}  // namespace fleetrun::cli
