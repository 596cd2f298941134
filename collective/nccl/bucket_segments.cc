#include "collective/nccl/bucket_segments.h"

namespace fleetrun::collective {

std::vector<BucketSegments> plan_launches(std::span<const BucketSegment> segments) {
  constexpr std::uint64_t kMaxBlocks = 1u << 30;  // below what a grid may have
  std::vector<BucketSegments> launches;
  for (const BucketSegment& segment : segments) {
    if (segment.count == 0) continue;
    const std::uint64_t blocks = (segment.count + kBlockElements - 1) / kBlockElements;
    if (launches.empty() || launches.back().segments == kSegmentsOfLaunch ||
        launches.back().blocks + blocks > kMaxBlocks)
      launches.emplace_back();
    BucketSegments& launch = launches.back();
    launch.list[launch.segments] = segment;
    launch.list[launch.segments].first_block = launch.blocks;
    ++launch.segments;
    launch.blocks += static_cast<std::uint32_t>(blocks);
  }
  return launches;
}

}  // namespace fleetrun::collective
