#include "ps/rpc/access.h"

#include "runtime/base/environ.h"
#include "runtime/base/log.h"

namespace fleetrun::ps {
namespace {

// Launchers and processes share one secret; what proves it to a launcher must prove nothing here.
constexpr const char* kLabel = "parameter servers";

}  // namespace

Access access_of(const Environ& environ) {
  if (environ.value_or("FLEETRUN_INSECURE", "0") == "1") {
    log::warning(
        "INSECURE: whoever reaches this job's ports can read and change its parameters "
        "(FLEETRUN_INSECURE=1)");
    return {};
  }
  if (const std::string* path = environ.find("FLEETRUN_SECRET_FILE"); path && !path->empty())
    return {read_secret_file(*path).derive(kLabel), *path};
  std::string path;
  const Secret secret = user_secret(environ, path);
  return {secret.derive(kLabel), path};
}

}  // namespace fleetrun::ps
