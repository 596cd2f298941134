// Looks at this host for `fleetrun doctor`. Changes nothing.
#pragma once

#include "launcher/doctor/host_check.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher::doctor {

/// Looks names up, and tries the master, for 6 s at most. Blocks.
/// Never throws for what is wrong with the host.
HostCheck make_host_check(const Questions& questions, const Environ& environment);

}  // namespace fleetrun::launcher::doctor
