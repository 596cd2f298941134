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
    if (process.environment.value_or("FLEETRUN_PS_CHECKPOINT_FOUND", "") != "refuse") continue;
    const std::string digits = std::to_string(process.identity.rank);
    const std::string name = "server-" + std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
    std::error_code none;
    if (!std::filesystem::exists(std::filesystem::path(directory) / name / "manifest", none)) continue;
    throw Error(ErrorKind::config, directory + " has the checkpoint of an earlier run, in " + name,
                "go on from it with --ps_checkpoint_found=resume, remove it with =replace, or name another "
                "directory");
  }
}

}  // namespace fleetrun::launcher
