// `fleetrun run_check`: a job of fleetrun's own, which shows that a host can run jobs. Its processes read who
// they are from their environment, listen where it says, and call every other process, each of which has to
// know the same job. Paddle's launcher trains a small model under that name;
// here nothing but this program is needed.
#pragma once

#include <string>

#include "runtime/base/environ.h"
#include "runtime/base/identity.h"

namespace fleetrun::launcher {

/// What one process tells another: job, pod, endpoints, then role and rank. Pure.
std::string greeting(const Identity& identity);

/// What is wrong with a greeting that should come from `role` `rank` of the same job;
/// empty when nothing is. Pure.
std::string mismatch(const std::string& heard, const Identity& identity, Role role, int rank);

/// One process of the check: 0 when it has met all others, 1 and a line on standard error when not within 20
/// seconds. A server stays until it is ended.
/// Throws: Error(config) without an identity, Error(network) when it cannot listen at its endpoint.
int run_check_process(const Environ& environ);

}  // namespace fleetrun::launcher
