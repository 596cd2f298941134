// The coordinator of a job over a list of hosts: here, in the head, which is not a member itself.
#pragma once

#include "launcher/remote/head.h"
#include "runtime/secure/secret.h"

namespace fleetrun::launcher::remote {

StartCoordinator head_coordinator(const JobConfig& config, const HeadPlan& plan, const Secret& secret);

}  // namespace fleetrun::launcher::remote
