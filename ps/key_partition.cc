#include "ps/key_partition.h"

#include <algorithm>

namespace fleetrun::ps {

Block dense_block(std::uint64_t width, std::uint32_t servers, std::uint32_t rank) noexcept {
  const std::uint64_t base = width / servers;
  const std::uint64_t longer = width % servers;
  const std::uint64_t begin = rank * base + std::min<std::uint64_t>(rank, longer);
  return {begin, begin + base + (rank < longer ? 1 : 0)};
}

}  // namespace fleetrun::ps
