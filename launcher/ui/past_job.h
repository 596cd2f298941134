// A job that has ended, from what it left beside its logs: events.jsonl and verdict.json.
#pragma once

#include <optional>
#include <string>

namespace fleetrun::launcher {

/// Its state at the end, as launcher/status/job_status_json has it, as far as the events tell: what a process
/// used is not among them. nullopt: there are no events of this user's.
std::optional<std::string> past_status(const std::string& pod_directory);

/// verdict.json; nullopt: the job did not come to one.
std::optional<std::string> verdict_of(const std::string& pod_directory);

}  // namespace fleetrun::launcher
