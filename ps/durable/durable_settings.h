// Durability from a process's environment, as fleetrun --ps_checkpoint tells it to servers and trainers.
#pragma once

#include <chrono>

#include "ps/base/durability.h"

namespace fleetrun {
class Environ;
}

namespace fleetrun::ps {

/// FLEETRUN_PS_CHECKPOINT (a directory), FLEETRUN_PS_CHECKPOINT_INTERVAL (seconds, 60), FLEETRUN_PS_LOG_SYNC
/// (process or power), FLEETRUN_PS_CHECKPOINT_FOUND (refuse, resume, require or replace), FLEETRUN_PS_RUN and
/// FLEETRUN_PS_SERVED.
/// Throws: Error(config) for a value that is none.
Durability durability_of(const Environ& environ);

/// FLEETRUN_PS_RECOVER, in seconds: how long trainers and servers wait for each other to come back. Default:
/// 120 where FLEETRUN_PS_CHECKPOINT is set, else 0. Throws: Error(config).
std::chrono::milliseconds recover_within_of(const Environ& environ);

}  // namespace fleetrun::ps
