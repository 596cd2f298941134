// A pseudo-terminal for one process (--pty): its standard input, output and error,
// and its controlling terminal.
//
//   user's terminal                       pseudo-terminal
//   keys (raw) --- Ctrl-Z is fleetrun's ---> process       its line discipline makes SIGINT of Ctrl-C,
//   size, SIGWINCH ------------------------> size          end of file of Ctrl-D, and echoes
//   screen  <------------------------------- output ---> log file (\r\n as \n)
//
// The user's terminal is raw only while the process runs and fleetrun is in the foreground.
#pragma once

#include <cstddef>
#include <optional>

#include "launcher/model/plan.h"
#include "launcher/run/job_control.h"

namespace fleetrun::launcher {

/// Refuses --pty where it cannot be had: `index` is the process with standard input, `input` its descriptor.
/// Throws: Error(usage).
void check_own_terminal(const Plan& plan, std::optional<std::size_t> index, int input);

/// Gives process `index` the pseudo-terminal, in each of its attempts.
MakeJobPart own_terminal(std::size_t index);

}  // namespace fleetrun::launcher
