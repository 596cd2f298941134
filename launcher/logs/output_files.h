// The files of torchrun's layout, where a process's output goes instead of its log.
#pragma once

#include "launcher/logs/log_files.h"
#include "launcher/model/plan.h"

namespace fleetrun::launcher {

/// Gives `log` what the process has as descriptors 1 and 2, and the names of the files behind them. What the
/// log is read for is then in the file of standard error, where there is one.
/// Throws: Error(host) that names the file and the reason.
void open_output(const ProcessSpec& process, int attempt, LogFile& log);

}  // namespace fleetrun::launcher
