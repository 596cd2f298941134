// Which gradients are reduced together: one all-reduce of a few megabytes is faster than a hundred of a few
// kilobytes. Pure: a value in, a value out; all ranks make it from the same list and get the same plan.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "collective/base/call.h"

namespace fleetrun::collective {

/// A gradient, as far as the plan needs to know it.
struct GradientShape {
  std::string parameter;  // "conv2d_3.w_0": what is before the first '.' is its layer
  std::size_t count = 0;
  DataType type = DataType::float32;
  bool sparse = false;  // exchanged as rows, in no bucket

  std::size_t bytes() const noexcept { return count * size_of(type); }
};

/// How far gradients are joined. The defaults are those of Paddle's flags of the same names.
struct BucketRule {
  /// FLAGS_fuse_parameter_memory_size, in MiB: layers are joined until they have as much. 0: one bucket of
  /// all. Below 0: a bucket for each layer.
  double memory_mib = -1.0;
  /// FLAGS_fuse_parameter_groups_size: layers are joined until there are more gradients than this. 1 and
  /// less: no matter.
  int groups_size = 1;
};

/// Buckets of indices of `gradients`. Layers come in the order of their first gradient, and a layer's
/// gradients stay together; with memory_mib 0 the one bucket is in the order of names. Both limits are looked
/// at after a layer was added, so that a bucket may exceed them by a layer. A bucket of several types becomes
/// one of each, in the order in which they come.
///
/// Source: Paddle's pass coalesce_grad_tensor, and document 004, section 2 (fuse_all_reduce_ops).
std::vector<std::vector<std::size_t>> plan_buckets(std::span<const GradientShape> gradients,
                                                   const BucketRule& rule);

}  // namespace fleetrun::collective
