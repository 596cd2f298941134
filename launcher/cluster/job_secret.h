// The secrets of a job of several hosts: what its launchers share, and what its processes get.
#pragma once

#include <string>

#include "launcher/model/job_config.h"
#include "runtime/base/environ.h"
#include "runtime/secure/secret.h"

namespace fleetrun::launcher {

/// What the launchers of a job share: handed over by whoever started this one, or this job's of --secret_file
/// or of the user's own secret. `where` becomes its place, for messages.
/// Throws: Error(config) as read_secret_file() and user_secret() do, and for a file that has another job's.
Secret rendezvous_secret(const JobConfig& config, const Environ& environment, std::string& where);

/// What the processes of one run get, derived from that.
Secret job_secret(const JobConfig& config, const Environ& environment, const std::string& run);

}  // namespace fleetrun::launcher
