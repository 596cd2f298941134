// How a process that has fleetrun's standard input (a lone one,
// or --stdin RANK) shares the terminal with fleetrun.
//
//   standard input is    the process
//   a pipe or file       has it as it is
//   a terminal           reads from it directly: prompts, pdb and `cat` work. It leads a session of its own,
//                        so the kernel's job control does not reach it, and fleetrun does that part: Ctrl-C
//                        is fleetrun's (an orderly stop), Ctrl-Z stops the process with fleetrun,
//                        and fg or bg wakes both
//   a terminal, and      has /dev/null: it would take the shell's input away,
//                        which the kernel keeps only a process of
//   fleetrun was begun   the terminal's own session from. fleetrun itself never reads,
//                        so SIGTTIN never stops a job
//   in the background
//
// Everybody else has /dev/null.
#pragma once

#include <cstddef>
#include <optional>

#include "launcher/model/job_config.h"
#include "launcher/run/job_control.h"

namespace fleetrun::launcher {

/// The process of `plan` that gets it; nullopt: nobody here. In a job of several hosts the trainer may be on
/// another one. Throws: Error(usage) when there is no such trainer.
std::optional<std::size_t> input_process(const StandardInput& spec, const Plan& plan);

/// `fd`, or -1 when it is a terminal in whose background this process is.
int usable_input(int fd) noexcept;

/// Process `index` gets `fd`, borrowed for the job, as its standard input.
MakeJobPart give_input(std::size_t index, int fd);

/// From now on Ctrl-Z (SIGTSTP) stops process `index` before it stops fleetrun, and SIGCONT wakes it.
MakeJobPart share_terminal(std::size_t index);

}  // namespace fleetrun::launcher
