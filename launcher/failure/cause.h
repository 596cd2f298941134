// Why a process failed, in words and as a kind that a restart policy can go by. Pure:
// launcher/failure/evidence.h reads the machine.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/model/failure_cause.h"
#include "runtime/base/exit_reason.h"

namespace fleetrun::launcher {

struct Evidence;

Cause explain(const Evidence& evidence, const ExitReason& reason);

/// Why `program` could not be started: `stage` is the step that failed ("exec", "fork", "directory"), with
/// errno.
Cause explain_start(const std::string& program, const std::string& stage, int error);

/// "512 B", "64.0 MiB", "31.3 GiB".
std::string shown_bytes(std::uint64_t bytes);

}  // namespace fleetrun::launcher
