// CRC-32C (Castagnoli), the checksum of saved tables and of columnar files.
// Source: RFC 3720, appendix B.4 (polynomial 0x1EDC6F41).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fleetrun {

/// The checksum of what `before` is the checksum of, followed by `bytes`.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// The same without the processor's instruction.
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

}  // namespace fleetrun
