// The page from its listening socket to its end: Ctrl-C, or the end of the job that it belongs to.
#pragma once

#include <functional>

#include "launcher/ui/api.h"
#include "launcher/ui/gate.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

/// Calls `ready` once browsers can ask, and serves them until SIGINT, SIGTERM or SIGHUP.
/// One that belongs to a job goes on after that, for 2 s at most, until browsers that look have the verdict.
/// Throws: Error(usage) when the one job that is to be shown is not there, and may not come either.
void run_ui(UniqueFd listener, const UiGate& gate, UiSettings settings, const std::function<void()>& ready);

}  // namespace fleetrun::launcher
