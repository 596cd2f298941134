// The events of a running job, as a subcommand that is attached to it sees them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/host/run_directory.h"
#include "launcher/status/control_client.h"

namespace fleetrun::cli {

/// One line of an attached client's.
struct StreamedEvent {
  std::string type;                // launcher/status/event_json
  std::string level;               // "INFO"
  std::string text;                // for people; may be empty
  std::optional<int> exit_status;  // of job_ended
};

/// nullopt for a line that is not an event (an answer to a request). Pure.
std::optional<StreamedEvent> parse_streamed(std::string_view line);

/// Waits for `fd` to have something to read, for a signal of the user's, or for `patience` to pass (negative:
/// no limit). Signals interrupt it: SIGINT, SIGTERM, SIGHUP and SIGWINCH are blocked and read from `signals`.
struct Wake {
  bool readable = false;
  int signal = 0;
};
Wake wait_for(int fd, int signals, std::chrono::milliseconds patience);

/// A descriptor from which wait_for reads the signals above, which are blocked from then on.
int open_signals();

/// Waits until the process is gone, for `patience` at most. False: it is still there.
bool wait_for_end(pid_t pid, std::chrono::milliseconds patience);

}  // namespace fleetrun::cli
