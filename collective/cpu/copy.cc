#include "collective/cpu/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace fleetrun::collective {

void copy_bytes(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

void copy_past_caches(void* to, const void* from, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  constexpr std::size_t kLine = 64;
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  const std::size_t front = std::min(bytes, (kLine - reinterpret_cast<std::uintptr_t>(out) % kLine) % kLine);
  copy_bytes(out, in, front);
  std::size_t at = front;
  for (; at + kLine <= bytes; at += kLine) {
    const auto* lane = reinterpret_cast<const __m128i*>(in + at);
    auto* line = reinterpret_cast<__m128i*>(out + at);
    const __m128i a = _mm_loadu_si128(lane), b = _mm_loadu_si128(lane + 1);
    const __m128i c = _mm_loadu_si128(lane + 2), d = _mm_loadu_si128(lane + 3);
    _mm_stream_si128(line, a);
    _mm_stream_si128(line + 1, b);
    _mm_stream_si128(line + 2, c);
    _mm_stream_si128(line + 3, d);
  }
  copy_bytes(out + at, in + at, bytes - at);
  _mm_sfence();  // whoever learns that the call has ended sees all of it
#else
  copy_bytes(to, from, bytes);
#endif
}

}  // namespace fleetrun::collective
