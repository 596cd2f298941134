// A build that forgets to sync directories: the test of power loss must fail with it.
#include "ps/base/directory_sync.h"

namespace fleetrun::ps {

void sync_directory(const std::string&) {}

}  // namespace fleetrun::ps
