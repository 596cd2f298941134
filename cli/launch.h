// A launch: from a checked configuration to fleetrun's exit status.
#pragma once

#include <string>

#include "launcher/model/job_config.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"

namespace fleetrun::cli {

/// Runs the job (or shows its plan, with --dry-run). Blocks until it is over.
/// Throws: Error for whatever is refused before the first process starts.
int launch(const launcher::JobConfig& config, const Environ& environment);

/// Shows `error` on standard error; returns `status`.
int refuse(const Error& error, int status);

/// Shows `text` on standard error.
void complain(const std::string& text);

/// A LAUNCH line from any thread, where `level` shows warnings.
void warn_apart(launcher::LogLevel level, const std::string& text);

/// Shows `text` on standard output; returns 0.
int print(const std::string& text);

}  // namespace fleetrun::cli
