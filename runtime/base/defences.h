// Which defences are up: all of them, always, in what is installed.
//
// For tests/attack the rooms that have some are compiled once more, with FLEETRUN_SWITCHABLE_DEFENCES. Each
// attack runs twice there: it has to fail, and once `left_out` names the defence, it has to succeed. A
// defence whose removal nothing notices is none. THREAT_MODEL.md lists them. Not for headers, which both
// builds read.
#pragma once

#ifdef FLEETRUN_SWITCHABLE_DEFENCES
#include <string_view>
#endif

namespace fleetrun {

#ifdef FLEETRUN_SWITCHABLE_DEFENCES
inline std::string_view left_out;

inline bool defends(std::string_view name) noexcept {
  return name != left_out;
}
#else
/// Whether the defence of this name is up.
constexpr bool defends(const char*) noexcept {
  return true;
}
#endif

}  // namespace fleetrun
