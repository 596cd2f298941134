// A secret that is one job's alone: what a host needs of a user's secret that takes part in no other job.
//
//   job NAME              the line before the 64 hexadecimal digits; files without it hold the user's own
#pragma once

#include <string>

#include "runtime/secure/secret.h"

namespace fleetrun {

/// The secret of the launchers of `job`, derived from the user's own.
Secret secret_of_job(const Secret& own, const std::string& job);
/// What a file with it holds.
std::string job_secret_text(const Secret& of_job, const std::string& job);
/// The job whose secret alone the file has; empty: it is a user's own, or cannot be read.
std::string job_of_secret_file(const std::string& path);

}  // namespace fleetrun
