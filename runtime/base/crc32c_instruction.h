// The processor's own instruction for CRC-32C, where it has one.
// Which file implements this is the build's to choose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fleetrun {

bool has_crc32c_instruction() noexcept;
/// As crc32c(), on inverted sums; only where the processor has the instruction.
std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes, std::uint32_t crc) noexcept;

}  // namespace fleetrun
