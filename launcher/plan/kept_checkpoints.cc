#include "launcher/plan/kept_checkpoints.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "runtime/base/error.h"

namespace fleetrun::launcher {

void check_kept_checkpoints(const Plan& plan) {
  for (const ProcessSpec& process : plan.processes) {
    const std::string directory = process.environment.value_or("FLEETRUN_PS_CHECKPOINT", "");
    if (process.identity.role != Role::server || directory.empty()) continue;
    const std::string found = process.environment.value_or("FLEETRUN_PS_CHECKPOINT_FOUND", "");
    if (found != "refuse" && found != "require") continue;
    const std::string digits = std::to_string(process.identity.rank);
    const std::string name = "server-" + std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
    const std::filesystem::path kept = std::filesystem::path(directory) / name;
    std::error_code none;
    const bool is_there = std::filesystem::exists(kept / "manifest", none) ||
                          std::filesystem::exists(kept / "manifest.previous", none);
    if (is_there == (found == "require")) continue;
    if (!is_there)
      throw Error(ErrorKind::config, directory + " has no checkpoint of server " + digits + " to go on from",
                  "name the directory of the run to go on from, or start with empty tables: "
                  "--ps_checkpoint_found=resume");
    throw Error(ErrorKind::config, directory + " has the checkpoint of an earlier run, in " + name,
                "go on from it with --ps_checkpoint_found=resume, remove it with =replace, or name another "
                "directory");
  }
}

}  // namespace fleetrun::launcher
