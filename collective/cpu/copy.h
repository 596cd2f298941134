// Copies between a rank's buffers and memory that ranks share.
#pragma once

#include <cstddef>

namespace fleetrun::collective {

inline std::byte* bytes_at(void* data, std::size_t offset) noexcept {
  return static_cast<std::byte*>(data) + offset;
}
inline const std::byte* bytes_at(const void* data, std::size_t offset) noexcept {
  return static_cast<const std::byte*>(data) + offset;
}

/// Like memmove, and nothing where `to` is `from`.
void copy_bytes(void* to, const void* from, std::size_t bytes) noexcept;

/// The same past the caches: for what is too large to be found there when it is read again.
/// Saves reading `to` first.
void copy_past_caches(void* to, const void* from, std::size_t bytes) noexcept;

}  // namespace fleetrun::collective
