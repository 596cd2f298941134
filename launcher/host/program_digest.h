// What is run, as a number: hosts of one job that run other bytes than each other are found by it.
#pragma once

#include <cstdint>
#include <vector>

#include "launcher/model/program.h"

namespace fleetrun::launcher {

/// Of the contents of the programs' files, in their order; 0 where one of them is a module or a folder, or
/// cannot be read.
std::uint64_t digest_of(const std::vector<Program>& programs);

}  // namespace fleetrun::launcher
