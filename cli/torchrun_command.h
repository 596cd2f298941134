// fleetrun torchrun: a job by torchrun's command line, and by the name torchrun where the user has made a
// link of that name.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::cli {

/// Exit status as torchrun's: 0, 2 for a wrong command line, 1 for all else.
int run_torchrun_command(const std::vector<std::string>& arguments, const Environ& environment);

/// The same by a link; Python is the one beside the link, as torchrun's is. `link` is argv[0].
int run_as_torchrun(const std::string& link, const std::vector<std::string>& arguments,
                    const Environ& environment);

/// Whether argv[0] is that of a link with torchrun's name.
bool is_torchrun(const std::string& program) noexcept;

}  // namespace fleetrun::cli
