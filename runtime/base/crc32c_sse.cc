// SSE 4.2.
#include <nmmintrin.h>

#include <cstring>

#include "runtime/base/crc32c_instruction.h"

namespace fleetrun {

bool has_crc32c_instruction() noexcept {
  return __builtin_cpu_supports("sse4.2") != 0;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes,
                                                                      std::uint32_t crc) noexcept {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t sum = crc;
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    sum = _mm_crc32_u64(sum, word);
  }
  auto out = static_cast<std::uint32_t>(sum);
  for (; left > 0; --left, ++at) out = _mm_crc32_u8(out, std::to_integer<unsigned char>(*at));
  return out;
}

}  // namespace fleetrun
