// Looks at the machine for what the planner has to know about it.
#pragma once

#include <string>
#include <vector>

#include "launcher/host/host_claims.h"
#include "launcher/host/port_lease.h"
#include "launcher/model/devices.h"
#include "launcher/model/host_facts.h"
#include "launcher/model/job_config.h"
#include "launcher/model/program.h"
#include "launcher/model/world.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

/// Looks at the machine. `leases` holds every port that the job will use when it returns, and `claims` its
/// devices and cores.
/// Throws: Error(host) for a port in use, an address that is not ours, devices that are not there.
HostFacts probe_host(const JobConfig& config, const std::vector<Program>& programs, const Environ& environ,
                     PortLeases& leases, HostClaims& claims);

/// Leases ports anew for another start of the job, because one of the old ones was taken before its process
/// bound it: chosen ports are others then, and those that the user named stay. No process of the job may be
/// alive. make_plan() of the result is the plan of that start.
/// Throws: Error(host) as probe_host() does.
HostFacts renew_ports(const JobConfig& config, HostFacts facts, PortLeases& leases);

/// The network interface that has this address; empty where none has it:
/// a name, or one of the loopback's others.
std::string interface_of(const std::string& address);

/// What the other hosts' plans need of this host.
PodOffer offer_of(const JobConfig& config, const HostFacts& facts);

/// Whether a Python program imports the package fleetrun by itself:
/// a line "import fleetrun…" or "from fleetrun…". Pure.
bool imports_fleetrun(const std::string& program_text);

/// The devices of a collective job's trainers. Pure.
/// Throws: Error(host), as plan_devices() does.
DevicePlan device_plan(const JobConfig& config, const HostFacts& facts);

}  // namespace fleetrun::launcher
