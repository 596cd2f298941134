// What a process proves to parameter servers, and they to it: that both know the job's secret.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/secret.h"

namespace fleetrun {
class Environ;
}

namespace fleetrun::ps {

struct Access {
  /// nullopt: nothing is proved (--insecure); connections are still kept from accidents by the same means.
  std::optional<Secret> secret;
  /// Where it comes from, for messages.
  std::string source;
};

/// The secret in the file FLEETRUN_SECRET_FILE, which fleetrun writes for the processes of a job; without the variable the
/// user's own (runtime/base/secret), so that servers and trainers that one user starts by hand meet. None with
/// FLEETRUN_INSECURE=1, which is said on standard error.
/// Throws: Error(config) for a file that is missing, readable by others, or holds no secret.
Access access_of(const Environ& environ);

}  // namespace fleetrun::ps
