// `fleetrun ui`: the jobs of this user as a page of a browser.
#pragma once

#include <string>
#include <vector>

#include "launcher/ui/api.h"
#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Serves the page until SIGINT, SIGTERM or SIGHUP. Returns 0. Throws: Error.
int run_ui_command(const std::vector<std::string>& arguments, const Environ& environment);

/// For all jobs of this user that run; where logs are is left open.
launcher::UiSettings ui_settings(const Environ& environment);

/// What whoever serves a page to other hosts is told.
constexpr const char* kPlainText =
    "what the page shows crosses the network as plain text; ssh -L keeps it private";

}  // namespace fleetrun::cli
