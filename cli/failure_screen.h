// What people see when a job has failed, on one screen: who failed first, why, what its log says, what
// followed. Pure.
#pragma once

#include <string>
#include <string_view>

#include "launcher/failure/report.h"
#include "launcher/job/job_history.h"

namespace fleetrun::cli {

/// Empty when no process failed. `last_lines` is the end of the failed process's log; the part of it that
/// tells the failure is shown, unless all of it is so short that it stands on the screen already.
std::string failure_screen(const launcher::Report& report, const launcher::Plan& plan,
                           const launcher::JobHistory& history, std::string_view last_lines);

}  // namespace fleetrun::cli
