// What travels to the hosts of a job (--ship): fleetrun with what it runs and loads, and the job's files.
#pragma once

#include <memory>
#include <string>

#include "launcher/model/job_config.h"
#include "launcher/remote/controller_plan.h"
#include "launcher/ship/read_tree.h"

namespace fleetrun::launcher::remote {

/// nullptr where nothing travels. Reads the files. `notes`: what the user should know of it. With a virtual
/// environment its interpreter becomes that of the orders.
/// Throws: Error(usage|config) where it is not clear what is to travel, Error(host) for what cannot be read.
std::shared_ptr<const ship::Cargo> make_cargo(const JobConfig& config, ControllerPlan& plan,
                                              const ControllerPlace& place, const Environ& environ,
                                              std::vector<std::string>& notes);

/// The absolute paths that travel, by the words of --ship. Looks at the file system.
std::vector<std::string> paths_to_ship(const JobConfig& config, const std::optional<std::string>& script,
                                       const std::string& directory, const std::string& home);

}  // namespace fleetrun::launcher::remote
