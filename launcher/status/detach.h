// `--detach`: the job goes on in the background while its user goes home.
//
//   foreground (what the user started)                 background
//   forks before any process of the job exists         a session of its own: no terminal,
//                                                      no hangup reaches it
//   waits                                              standard input /dev/null; output and LAUNCH lines to
//                                                      LOG_DIR/POD/launch.log
//   says how to attach and to stop, and ends with 0    once every process runs and the job can be found, says
//                                                      so
//   shows launch.log and ends with the job's status    when the job ends before that
//   passes Ctrl-C on, and waits on                     stops
#pragma once

#include <optional>
#include <string>

#include "launcher/model/plan.h"
#include "launcher/run/job_control.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {

/// What is left to do in the foreground.
struct Foreground {
  int exit_status = 0;
  std::string output;  // for standard output
  std::string error;   // for standard error
};

struct Background {
  UniqueFd running;        // to be handed to tell_running()
  std::string launch_log;  // path
};

/// Forks. The foreground comes back when it may end; the background at once. One thread only may run.
/// Throws: Error(host) when launch.log cannot be made, or no process.
std::optional<Foreground> go_to_background(const Plan& plan, Background& background);

/// Tells the foreground that every process runs. To come after the parts that make the job findable.
MakeJobPart tell_running(UniqueFd running);

}  // namespace fleetrun::launcher
