// What a launch of collective/nccl/bucket_kernels.cu is told: parts of memory, each read, scaled, converted
// and written, cut into pieces of which each thread block does one. The list travels with the launch, so that
// nothing has to be kept for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fleetrun::collective {

struct BucketSegment {
  const void* from = nullptr;
  void* to = nullptr;
  std::uint64_t count = 0;        // elements
  std::uint64_t first_block = 0;  // of the launch
};

inline constexpr std::uint32_t kSegmentsOfLaunch = 120;  // a launch takes at most 4 KiB of arguments
inline constexpr std::uint32_t kBlockThreads = 256;
inline constexpr std::uint32_t kBlockElements = 8192;

struct BucketSegments {
  std::uint32_t segments = 0;
  std::uint32_t blocks = 0;
  BucketSegment list[kSegmentsOfLaunch];
};
static_assert(sizeof(BucketSegments) + 2 * sizeof(std::uint64_t) <= 4096);

/// The segment that `block` belongs to: the last one that begins at or before it.
constexpr std::uint32_t segment_of(const BucketSegments& launch, std::uint32_t block) {
  std::uint32_t low = 0, high = launch.segments;
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    if (launch.list[middle].first_block <= block)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/// `segments` (without first_block) as launches; those of no elements are left out.
std::vector<BucketSegments> plan_launches(std::span<const BucketSegment> segments);

}  // namespace fleetrun::collective
