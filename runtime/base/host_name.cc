#include "runtime/base/host_name.h"

#include <limits.h>
#include <unistd.h>

namespace fleetrun {

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace fleetrun
