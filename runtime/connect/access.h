// What the processes of a job prove to each other: that they know its secret.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/secure/secret.h"

namespace fleetrun {

class Environ;

struct Access {
  /// nullopt: nothing is proved (--insecure); connections are still kept from accidents by the same means.
  std::optional<Secret> secret;
  /// Where it comes from, for messages.
  std::string source;
};

/// The secret in the file FLEETRUN_SECRET_FILE, which fleetrun writes for the processes of a job; without the
/// variable the user's own (runtime/secure/secret), so that processes that one user starts by hand meet.
/// `label` says what it is for: what proves it there must prove nothing elsewhere. None with
/// FLEETRUN_INSECURE=1, which is said on standard error with what strangers `can` do then
/// ("read and change its parameters").
/// Throws: Error(config) for a file that is missing, readable by others, or holds no secret.
Access access_of(const Environ& environ, std::string_view label, std::string_view can);

/// What to do where two sides have different secrets.
constexpr const char* kSecretHint =
    "by hand, give all of them the same secret: the file FLEETRUN_SECRET_FILE (mode 0600), else "
    "~/.config/fleetrun/secret of "
    "their users";

}  // namespace fleetrun
