// `fleetrun complete COMMAND WORD…`: what the last WORD, which may be empty, can become behind that
// subcommand, a candidate a line. For the scripts of cli/completion, which offer files where there is none.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

int run_complete_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
