#include "runtime/connect/access.h"

#include "runtime/base/environ.h"
#include "runtime/log/log.h"

namespace fleetrun {

Access access_of(const Environ& environ, std::string_view label, std::string_view can) {
  if (environ.value_or("FLEETRUN_INSECURE", "0") == "1") {
    log::warning("INSECURE: whoever reaches this job's ports can " + std::string(can) +
                 " (FLEETRUN_INSECURE=1)");
    return {};
  }
  if (const std::string* path = environ.find("FLEETRUN_SECRET_FILE"); path && !path->empty())
    return {read_secret_file(*path).derive(label), *path};
  std::string path;
  const Secret secret = user_secret(environ, path);
  return {secret.derive(label), path};
}

}  // namespace fleetrun
