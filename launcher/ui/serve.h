// `fleetrun ui` from its listening socket to Ctrl-C.
#pragma once

#include <functional>

#include "launcher/ui/api.h"
#include "launcher/ui/gate.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

/// Calls `ready` once browsers can ask, and serves them until SIGINT, SIGTERM or SIGHUP.
/// Throws: Error(usage) when the one job that is to be shown is not there.
void run_ui(UniqueFd listener, const UiGate& gate, UiSettings settings, const std::function<void()>& ready);

}  // namespace fleetrun::launcher
