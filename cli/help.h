// The text of `fleetrun --help`.
#pragma once

#include <string>

namespace fleetrun::cli {

std::string help_text();

}  // namespace fleetrun::cli
