// fleetrun-init as the init of one command: starts it, hands every signal on to it, reaps whatever is
// orphaned, and ends with its exit status (128 and the signal, when it died of one). Nothing polls.
#pragma once

#include "launcher/init/init_options.h"

namespace fleetrun::launcher {

/// Returns the exit status of the program. Single-threaded callers only.
int run_init_command(const InitOptions& options);

}  // namespace fleetrun::launcher
