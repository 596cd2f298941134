// All of some bytes to a descriptor that blocks.
#pragma once

#include <string_view>

namespace fleetrun {

/// False, with errno: not all of them could be written.
bool write_all(int fd, std::string_view bytes) noexcept;

}  // namespace fleetrun
