// What the environment says about how a client exchanges rows and gradients:
//
//   FLEETRUN_PS_GRADIENTS, FLEETRUN_PS_ROWS   float32 (the default), fp16, bf16 or int8 (ps/base/encoding.h)
//   FLEETRUN_PS_DEADLINE                      seconds that a pull or a push may take;
//                                             0 (the default): for ever
//   FLEETRUN_PS_WAIT_WARNING                  seconds after which trainers that all wait say who waits where;
//                                             60 by default, 0: never
#pragma once

#include "ps/client/client.h"

namespace fleetrun {
class Environ;
}

namespace fleetrun::ps {

/// Throws: Error(config) naming the variable that says something else.
void read_environment(const Environ& environ, ClientOptions& options);

}  // namespace fleetrun::ps
