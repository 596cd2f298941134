// What the user wants, from the command line and the environment, checked and typed. Pure.
//
// A flag wins over the environment; where the two disagree there is a note, which is shown as a warning.
// Settings are read by group, in the job_config_*.cc.
#pragma once

#include "launcher/model/job_config.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

/// Throws: Error(usage) for a flag, Error(config) for an environment variable; the message names it and its
/// value.
JobConfig make_job_config(const Options& options, const Environ& environ);

}  // namespace fleetrun::launcher
