// A processor whose instruction nobody has written for yet.
#include "ps/crc32c_instruction.h"

namespace fleetrun::ps {

bool has_crc32c_instruction() noexcept {
  return false;
}

std::uint32_t crc32c_by_instruction(std::span<const std::byte>, std::uint32_t crc) noexcept {
  return crc;
}

}  // namespace fleetrun::ps
