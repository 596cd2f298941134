// `fleetrun agent`: the far end of a launch. Started by ssh, by srun, or directly on this machine.
//
//   --stdin   says hello, waits for an order, runs the launcher that the order describes (--node) and passes
//             on what it says. Where its standard input ends, or it is told to stop by a signal, it stops
//             that launcher and ends. It may be told to start the agents of other hosts too,
//             and then stands between them and the controller.
//   --node    reads an order from its standard input to its end and is the launcher.
//
// Two processes, so that the launcher is the same on every host and nothing it prints can be taken for a
// frame. The launcher gets SIGTERM where its agent dies.
#pragma once

#include <string>

#include "launcher/remote/launch_order.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher::remote {

/// Returns the exit status of the launcher; 143 where it was stopped before it had an order. Blocks.
int run_agent(const Environ& environment);

/// The order on standard input, which is /dev/null afterwards; ties this process to its agent.
/// Throws: Error(data), Error(host).
LaunchOrder take_order();

}  // namespace fleetrun::launcher::remote
