// A command line of fleetrun data that cannot be done.
#pragma once

#include <string>

#include "runtime/base/error.h"

namespace fleetrun::dataset {

inline constexpr const char* kHelpHint = "fleetrun data --help lists the commands and their flags";

/// Throws: Error(usage), always; its hint names the help.
[[noreturn]] inline void refuse_arguments(const std::string& what) {
  throw Error(ErrorKind::usage, what, kHelpHint);
}

}  // namespace fleetrun::dataset
