// Sixteen bytes a comparison: every x86-64 has SSE2.
#include <emmintrin.h>

#include "dataset/schema/field_scan.h"
#include "dataset/schema/field_scan_blocks.h"

namespace fleetrun::dataset {
namespace {

std::uint64_t equal_bytes(const __m128i (&bytes)[4], __m128i wanted) noexcept {
  std::uint64_t mask = 0;
  for (int i = 3; i >= 0; --i)
    mask = mask << 16 | static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes[i], wanted)));
  return mask;
}

}  // namespace

void find_ends(const char* text, std::size_t from, std::size_t to, char delimiter, FieldEnds& ends) {
  const __m128i delimiters = _mm_set1_epi8(delimiter);
  const __m128i line_feeds = _mm_set1_epi8('\n');
  const auto masks_at = [&](const char* at) {
    __m128i bytes[4];
    for (int i = 0; i < 4; ++i) bytes[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 16 * i));
    return BlockMasks{equal_bytes(bytes, delimiters), equal_bytes(bytes, line_feeds)};
  };
  find_ends_by_blocks(text, from, to, masks_at, ends);
}

}  // namespace fleetrun::dataset
