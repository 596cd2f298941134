// fleetrun as a container's first process: a pid 1 inherits orphans that are nobody's, and the kernel drops
// the signals that it has no handler for.
#pragma once

namespace fleetrun::launcher {

/// As pid 1, becomes fleetrun-init with this same command below it: that reaps, hands signals on, and has the
/// command's exit status. Signals are blocked from here on and wait for it. Returns in every other process,
/// and where fleetrun-init cannot be executed. To be called first thing in main().
void leave_pid_one(char** argv) noexcept;

}  // namespace fleetrun::launcher
