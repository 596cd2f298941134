// Who gets fleetrun's standard input, and how that process shares the terminal with fleetrun.
//
//   standard input is    the process that gets it (a lone one, or --stdin RANK)
//   a pipe or file       has it as it is
//   a terminal           reads from it directly: prompts, pdb and `cat` work. It leads a session of its own, so the
//                        kernel's job control does not reach it, and fleetrun does that part: Ctrl-C is fleetrun's
//                        (an orderly stop), Ctrl-Z stops the process with fleetrun, and fg or bg wakes both
//   a terminal, and      has /dev/null: it would take the shell's input away, which the kernel keeps only a process of
//   fleetrun was begun   the terminal's own session from. fleetrun itself never reads, so SIGTTIN never stops a job
//   in the background
//
// Everybody else has /dev/null.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "launcher/job_config.h"
#include "launcher/plan.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

/// The process that standard input goes to. Pure.
/// Throws: Error(config) when no trainer of this host has the rank.
std::optional<std::size_t> process_with_input(const Plan& plan, const StandardInput& choice);

/// `fd`, or -1 when it is a terminal in whose background this process is.
int usable_input(int fd) noexcept;

class TerminalShare {
 public:
  virtual ~TerminalShare() = default;
};

/// From now on Ctrl-Z (SIGTSTP) and SIGCONT go to the process that reads from the terminal, too: `send` sends it a
/// signal. Then fleetrun stops itself, as Ctrl-Z wants it.
std::unique_ptr<TerminalShare> share_terminal(boost::asio::io_context& loop,
                                              std::function<void(int number)> send);

}  // namespace fleetrun::launcher
