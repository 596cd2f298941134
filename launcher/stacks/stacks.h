// Reads the stacks of the processes of a job while they run: for a job that hangs (launcher/run/hang_watch),
// and for whoever asks what a job is doing (fleetrun status --stacks).
//
// Each process and the busiest ones below it are read by what there is: an interpreter of Python by py-spy,
// where that is in PATH, else from outside (launcher/stacks/stack_python); others by gdb from PATH; and all
// by /proc, which always answers but knows the system call only. Everything is read by
// processes of their own (fleetrun only reads what they print), several at once, each with a deadline:
// nothing that is stuck makes fleetrun wait. They end with fleetrun.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/stacks/stack_groups.h"
#include "runtime/base/environ.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

/// One process of the job that runs.
struct StackTarget {
  std::size_t index = 0;  // in the plan
  std::string role;
  int rank = 0;
  pid_t pid = 0;  // as this host sees it
};

struct StackSettings {
  Environ environment;                         // of fleetrun: PATH is where py-spy and gdb are looked for
  std::chrono::milliseconds deadline{10'000};  // for all of it
  std::chrono::milliseconds tool_deadline{5'000};
  std::size_t at_once = 4;
  std::size_t max_descendants = 3;  // of each process
  std::size_t max_bytes = 1 << 20;  // of what one tool prints
};

/// A reading under way; its end stops it, and then nothing is called any more.
class StackReading {
 public:
  virtual ~StackReading() = default;
};

/// Calls `on_done` once, from the loop, not from within this call. The targets come first to last, so the
/// most interesting ones come first where the time is not enough for all.
/// Throws: Error(host) when no process can be made.
std::unique_ptr<StackReading> read_stacks(boost::asio::io_context& loop, std::vector<StackTarget> targets,
                                          StackSettings settings,
                                          std::function<void(std::vector<ProcessStacks>)> on_done);

}  // namespace fleetrun::launcher
