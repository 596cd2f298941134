// What every way of scanning shares: from a mask of 64 bytes to the ends. For find_ends() alone.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "dataset/schema/field_scan.h"

namespace fleetrun::dataset {

/// Of 64 bytes, bit i for byte i.
struct BlockMasks {
  std::uint64_t delimiters;
  std::uint64_t line_feeds;
};

template <class Masks>
void find_ends_by_blocks(const char* text, std::size_t from, std::size_t to, const Masks& masks_at,
                         FieldEnds& ends) {
  std::size_t count = ends.fields.size();
  for (std::size_t at = from; at < to; at += 64) {
    const BlockMasks masks = masks_at(text + at);
    const std::uint64_t valid = to - at >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (to - at)) - 1;
    std::uint64_t all = (masks.delimiters | masks.line_feeds) & valid;
    for (std::uint64_t feeds = masks.line_feeds & valid; feeds != 0; feeds &= feeds - 1) {
      const std::uint64_t before = all & ((feeds & (0 - feeds)) - 1);
      ends.lines.push_back(
          static_cast<std::uint32_t>(count + static_cast<std::size_t>(std::popcount(before))));
    }
    if (ends.fields.size() < count + 64) ends.fields.resize(std::max(2 * ends.fields.size(), count + 64));
    std::uint32_t* out = ends.fields.data() + count;
    std::uint32_t* const first = out;
    for (; all != 0; all &= all - 1)
      *out++ = static_cast<std::uint32_t>(at + static_cast<std::size_t>(std::countr_zero(all)));
    count += static_cast<std::size_t>(out - first);
  }
  ends.fields.resize(count);
}

}  // namespace fleetrun::dataset
