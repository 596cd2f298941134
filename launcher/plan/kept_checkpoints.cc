#include "launcher/plan/kept_checkpoints.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

namespace fs = std::filesystem;

std::string name_of_directory(int rank) {
  const std::string digits = std::to_string(rank);
  return "server-" + std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

// What the servers of a plan have kept.
struct Kept {
  std::string directory, found;      // --ps_checkpoint, --ps_checkpoint_found: the same for all
  std::optional<int> with, without;  // the first server with a checkpoint, and the first that has none
};

Kept look(const Plan& plan) {
  Kept kept;
  for (const ProcessSpec& process : plan.processes) {
    const std::string directory = process.environment.value_or("FLEETRUN_PS_CHECKPOINT", "");
    if (process.identity.role != Role::server || directory.empty()) continue;
    kept.directory = directory;
    kept.found = process.environment.value_or("FLEETRUN_PS_CHECKPOINT_FOUND", "");
    const int rank = process.identity.rank;
    const fs::path own = fs::path(directory) / name_of_directory(rank);
    std::error_code none;
    const bool is_there = fs::exists(own / "manifest", none) || fs::exists(own / "manifest.previous", none);
    std::optional<int>& first = is_there ? kept.with : kept.without;
    if (!first) first = rank;
  }
  return kept;
}

}  // namespace

void check_kept_checkpoints(const Plan& plan) {
  const auto [directory, found, with, without] = look(plan);
  if (with && found == "refuse")
    throw Error(ErrorKind::config,
                directory + " has the checkpoint of an earlier run, in " + name_of_directory(*with),
                "go on from it with --ps_checkpoint_found=resume, remove it with =replace, or name another "
                "directory");
  if (without && found == "require")
    throw Error(ErrorKind::config,
                directory + " has no checkpoint of server " + std::to_string(*without) + " to go on from",
                "name the directory of the run to go on from, or start with empty tables: "
                "--ps_checkpoint_found=resume");
  if (with && without && found == "resume")
    throw Error(ErrorKind::config,
                directory + " has a checkpoint of server " + std::to_string(*with) + ", and none of server " +
                    std::to_string(*without),
                "bring back " + name_of_directory(*without) +
                    ", or begin with empty tables: --ps_checkpoint_found=replace");
}

std::string tables_of_attempt(const Plan& plan, int attempt) {
  const bool has_servers =
      plan.mode == Mode::ps && std::ranges::any_of(plan.processes, [](const ProcessSpec& process) {
        return process.identity.role == Role::server;
      });
  if (!has_servers) return {};
  const std::string found = look(plan).found;
  return "attempt " + std::to_string(attempt) + ": " +
         (found == "resume" || found == "require"
              ? "the servers go on with their tables"
              : "the servers begin with empty tables, and of those before only what the script has saved is "
                "left") +
         "; the trainers begin their script anew";
}

}  // namespace fleetrun::launcher
