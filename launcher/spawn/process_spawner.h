// A pod held by fleetrun-init, which is started through Boost.Process. The only file that includes
// Boost.Process is process_spawner.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launcher/spawn/spawner.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

struct InitSettings {
  std::string program;  // the path of fleetrun-init
  SetupFrame setup;
};

/// Starts fleetrun-init and sends it `settings.setup`. `listener` outlives the pod. fleetrun becomes a
/// subreaper, so that processes whose init was killed come to it. Throws: Error(spawn) when fleetrun-init
/// cannot be started.
std::unique_ptr<Pod> start_pod(boost::asio::io_context& loop, const InitSettings& settings,
                               PodListener& listener);

/// fleetrun-init beside `fleetrun_directory`/fleetrun, or in the build tree (../launcher).
/// Throws: Error(spawn) when it is in neither place.
std::string find_init(const std::string& fleetrun_directory);

}  // namespace fleetrun::launcher
