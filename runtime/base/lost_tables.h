// What a parameter server says that was started again and has nothing of what it had; the launcher knows by
// it that no checkpoint is there to go on from.
#pragma once

#include <string_view>

namespace fleetrun {

inline constexpr std::string_view kHasLostItsTables = " has lost its tables: ";

}  // namespace fleetrun
