// What a process proves to parameter servers, and they to it:
// that both know the job's secret (runtime/connect/access.h).
#pragma once

#include "runtime/connect/access.h"

namespace fleetrun::ps {

using fleetrun::Access;

/// Throws: Error(config) as fleetrun::access_of() does.
Access access_of(const Environ& environ);

}  // namespace fleetrun::ps
