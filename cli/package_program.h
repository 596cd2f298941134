// Commands that are modules of the Python package: fleetrun check, fleetrun export.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Becomes `folder` of the package, run by `python`, or by the interpreter that a job would have.
/// Throws: Error where there is no interpreter, or it lacks the package; `command` is what the user ran.
[[noreturn]] void execute_package_program(const std::string& command, const std::string& folder,
                                          const std::optional<std::string>& python,
                                          std::vector<std::string> arguments, const Environ& environment);

}  // namespace fleetrun::cli
