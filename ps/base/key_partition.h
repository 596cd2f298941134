// Which server holds what: sparse rows by the hash of their key, dense tables in contiguous blocks. Pure;
// both sides compute it, and it must never change between a save and a load by the same number of servers.
#pragma once

#include <cstdint>

#include "ps/base/table_config.h"
#include "runtime/base/mix.h"

namespace fleetrun::ps {

/// The rank of the server that holds `key`. Keys with a common stride spread as evenly as random ones.
constexpr std::uint32_t server_of(std::uint64_t key, std::uint32_t servers) noexcept {
  const std::uint64_t high = split_mix(key) >> 32;
  return static_cast<std::uint32_t>((high * servers) >> 32);
}

struct Block {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::uint64_t size() const noexcept { return end - begin; }
  bool operator==(const Block&) const = default;
};

/// The floats [begin, end) of a dense table that the server `rank` holds. The table has as many blocks as fit
/// with min_block floats in each, one at least and one a server at most; their sizes differ by one at most.
/// With fewer blocks than servers they lie on servers that follow each other, from one that the table's id
/// names, so that small tables spread; the others hold an empty block.
Block dense_block(const TableConfig& table, std::uint32_t servers, std::uint32_t rank) noexcept;

}  // namespace fleetrun::ps
