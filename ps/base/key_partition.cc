#include "ps/base/key_partition.h"

#include <algorithm>

namespace fleetrun::ps {

Block dense_block(const TableConfig& table, std::uint32_t servers, std::uint32_t rank) noexcept {
  const std::uint64_t fitting = table.min_block == 0 ? servers : table.width / table.min_block;
  const std::uint64_t blocks = std::clamp<std::uint64_t>(fitting, 1, servers);
  const std::uint32_t first = blocks == servers ? 0 : server_of(table.id, servers);
  const std::uint64_t index = rank >= first ? rank - first : rank + servers - first;
  if (index >= blocks) return {table.width, table.width};
  const std::uint64_t base = table.width / blocks;
  const std::uint64_t longer = table.width % blocks;
  const std::uint64_t begin = index * base + std::min(index, longer);
  return {begin, begin + base + (index < longer ? 1 : 0)};
}

}  // namespace fleetrun::ps
