// The job that a subcommand is about: `fleetrun status|top|attach|stop [JOB]`, JOB being a pod, a job id, or
// a path in its log directory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_flags.h"
#include "launcher/host/run_directory.h"
#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Throws: Error(usage) when `words` has more than one word, and when no job or several match.
launcher::JobEntry choose_job(std::string_view command, const std::vector<std::string>& words,
                              const Environ& environment);

/// The directory with the logs of a job that runs or ran, LOG_DIR/POD: of a running job that `job` names,
/// else what lies in `log_dir` (nullopt: log, or PADDLE_LOG_DIR), else the only job that runs.
/// Throws: Error(host) where there is none.
std::string choose_pod_directory(const std::optional<std::string>& log_dir,
                                 const std::optional<std::string>& job, const Environ& environment);
/// The same of a command about the job that its only word names, if there is one, and with its --log_dir.
/// Throws: Error(usage) for several words, too.
std::string choose_pod_directory(const std::string& command, const CommandArguments& words,
                                 const Environ& environment);

/// Writes all of `text`, on a terminal as TerminalText; what a reader or terminal that is gone does not take
/// is lost. Throws: Error(host) for a standard output that is full or cannot be written.
void write_text(int fd, std::string_view text);
/// The same for bytes that are meant to act on a terminal.
void write_bytes(int fd, std::string_view bytes);

/// "job default (pod abcdef)"
std::string name_of(const launcher::JobEntry& job);

}  // namespace fleetrun::cli
