// The coordinator of a job over a list of hosts: here, in the controller, which is not a member itself.
#pragma once

#include "launcher/remote/controller.h"
#include "runtime/secure/secret.h"

namespace fleetrun::launcher::remote {

StartCoordinator controller_coordinator(const JobConfig& config, const ControllerPlan& plan,
                                        const Secret& secret);

}  // namespace fleetrun::launcher::remote
