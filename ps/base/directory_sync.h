// Names that survive a crash of the host.
#pragma once

#include <string>

namespace fleetrun::ps {

/// After this the names in `directory` are durable as they are now. In a file of its own, so that a test can
/// be linked with another one and show what is lost without it. Throws: Error(host) naming the directory.
void sync_directory(const std::string& directory);

}  // namespace fleetrun::ps
