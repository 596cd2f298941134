// What processes say as they end by which the launcher knows how the job can go on.
#pragma once

#include <string_view>

namespace fleetrun {

/// Of a parameter server that was started again and has nothing of what it had: so it is each time.
inline constexpr std::string_view kHasLostItsTables = " has lost its tables: ";
/// The same, where its standby has not answered: perhaps it does the next time.
inline constexpr std::string_view kMayHaveLostItsTables =
    " has lost its tables, unless its standby comes back: ";
/// Of a trainer that was started again alone and needs what the others had at that place: only together can
/// they come there once more.
inline constexpr std::string_view kCannotGoOnAlone = " cannot go on alone: ";

}  // namespace fleetrun
