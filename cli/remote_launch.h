// A launch over a list of hosts: --hosts, --hostfile. This host is the controller; each of them runs what
// it would run had its launcher been started there by hand.
#pragma once

#include "launcher/model/job_config.h"
#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Runs the job (or shows what would happen on each host, with --dry-run). Blocks until it is over. `options`
/// are those of `config` before a job file was applied.
/// Throws: Error for whatever is refused before the first process starts.
int launch_on_hosts(const launcher::Options& options, const launcher::JobConfig& config,
                    const Environ& environment);

}  // namespace fleetrun::cli
