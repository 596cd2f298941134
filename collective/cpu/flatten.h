// Many tensors as one buffer, and back: what is communicated as one call. On the way numbers change their
// type and are scaled, and what is not finite any more is found: one pass over memory for what mixed
// precision needs. For CPUs; collective/nccl/bucket_kernels.h has the same functions for GPUs,
// which give the same bits.
//
// A number is read, multiplied by `scale` in float32 (in float64 where the tensors or the bucket are), and
// rounded once to what it is written as, to nearest, ties to even.
// Integers, and anything at scale 1 between equal types, are copied.
//
// Shapes: the tensors have together as many elements as the bucket; all of them are of one type. Buffers have
// any alignment
// and do not overlap.   Threads: any.
// Throws: Error(config) for other shapes, and for integers that would be scaled or converted.
#pragma once

#include <cstddef>
#include <span>

#include "collective/base/call.h"
#include "collective/base/communicator.h"

namespace fleetrun::collective {

/// bucket = all tensors' elements, one tensor behind the other. true: all that was written is finite.
bool flatten(std::span<const ConstBuffer> tensors, Buffer bucket, double scale = 1);
/// The way back. true: all that was written is finite.
bool unflatten(ConstBuffer bucket, std::span<const Buffer> tensors, double scale = 1);

/// What both functions check, here and for GPUs.
void check_flatten(std::span<const ConstBuffer> tensors, ConstBuffer bucket, double scale);
bool is_floating(DataType type) noexcept;

}  // namespace fleetrun::collective
