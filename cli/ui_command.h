// `fleetrun ui`: the jobs of this user as a page of a browser.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Serves the page until SIGINT, SIGTERM or SIGHUP. Returns 0. Throws: Error.
int run_ui_command(const std::vector<std::string>& arguments, const Environ& environment);

}  // namespace fleetrun::cli
