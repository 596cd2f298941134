// The table of failures that torchrun ends with, and the reply file of a torchrun that runs below another.
#pragma once

#include <string>

#include "launcher/failure/report.h"
#include "launcher/job/job_history.h"
#include "launcher/model/plan.h"

namespace fleetrun::cli {

/// All processes of this host that failed, and of these the root cause; empty where none did. `name` is that
/// of the script. error.json, which PyTorch's @record writes, has the traceback where it is there.
std::string torchrun_failures(const launcher::Report& report, const launcher::Plan& plan,
                              const launcher::JobHistory& history, const std::string& name);

/// Copies the root cause's error.json to `reply`, with its exit code in it.
void write_reply(const launcher::Report& report, const launcher::Plan& plan,
                 const launcher::JobHistory& history, const std::string& reply);

}  // namespace fleetrun::cli
