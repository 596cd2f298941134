// Eight bytes at a time in a 64-bit word, for every processor.
#include <cstring>

#include "dataset/schema/field_scan.h"
#include "dataset/schema/field_scan_blocks.h"

namespace fleetrun::dataset {
namespace {

static_assert(std::endian::native == std::endian::little, "the first byte must be the lowest");

/// Bit i where byte i of `word` is 0.
std::uint64_t zero_bytes(std::uint64_t word) noexcept {
  constexpr std::uint64_t low = 0x7F7F7F7F7F7F7F7F;
  const std::uint64_t tops = ~(((word & low) + low) | word | low);  // 0x80 in each byte that is 0
  return (tops >> 7) * 0x0102040810204080 >> 56;
}

}  // namespace

void find_ends(const char* text, std::size_t from, std::size_t to, char delimiter, FieldEnds& ends) {
  constexpr std::uint64_t every = 0x0101010101010101;
  const std::uint64_t delimiters = every * static_cast<unsigned char>(delimiter);
  const auto masks_at = [&](const char* at) {
    BlockMasks masks{0, 0};
    for (int i = 7; i >= 0; --i) {
      std::uint64_t word;
      std::memcpy(&word, at + 8 * i, 8);
      masks.delimiters = masks.delimiters << 8 | zero_bytes(word ^ delimiters);
      masks.line_feeds = masks.line_feeds << 8 | zero_bytes(word ^ (every * '\n'));
    }
    return masks;
  };
  find_ends_by_blocks(text, from, to, masks_at, ends);
}

}  // namespace fleetrun::dataset
