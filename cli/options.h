// argv → Options. Flags are split from the script and its arguments; nothing is computed or checked beyond
// that.
//
// The first word that is neither a flag nor a flag's value is the script, and everything after it belongs to
// the script. Flags are written with '_' or '-', and their value after a blank or '='; one letter's also
// right behind it (-r3). The beginning of a flag of Paddle's or torchrun's launcher stands for it where no
// other flag of theirs begins so, as it does with them, and leaves a note;
// flags of our own have to be written out.
#pragma once

#include <string>
#include <vector>

#include "launcher/model/job_config.h"

namespace fleetrun::cli {

struct CommandLine {
  launcher::Options options;
  bool help = false;
  bool version = false;
  bool job_schema = false;
};

/// `arguments` without the program's name.
/// Throws: Error(usage) for an unknown flag (with the nearest one as a hint), a flag without its value, a
/// flag that is there twice.
CommandLine parse_command_line(const std::vector<std::string>& arguments);

}  // namespace fleetrun::cli
