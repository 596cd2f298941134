// `fleetrun agent --task`: the task that srun starts on each host. It runs an agent (`fleetrun agent
// --stdin`) and stands between it and srun: of the frames that srun gives to all tasks it passes on those for
// its host, and what the agent says goes out as lines (launcher/remote/srun_lines).
//
// Where srun's input ends, so does the agent's, which then stops everything here. Slurm's signals go on:
// TERM, INT and HUP to the agent, which stops its launcher; USR1 and USR2 to the launcher.
#pragma once

#include "runtime/base/environ.h"

namespace fleetrun::launcher {

/// Returns the agent's exit status. Blocks. Throws: Error(config) outside of a step of Slurm's.
int run_srun_task(const Environ& environment);

}  // namespace fleetrun::launcher
