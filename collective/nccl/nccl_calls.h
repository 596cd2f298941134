// collective/base/call.h's calls in NCCL's words.
#pragma once

#include <nccl.h>

#include "collective/base/call.h"
#include "collective/base/communicator.h"
#include "collective/nccl/nccl_library.h"

namespace fleetrun::collective {

/// Where a call goes.
struct NcclTarget {
  const Nccl& nccl;
  ncclComm_t communicator;
  cudaStream_t stream;
  const Place& place;
};

/// Throws: Error(config) for a type that NCCL cannot reduce (int16).
void check_for_nccl(const Call& call);

/// Adds `call` to the group that was started (ncclGroupStart). What NCCL has no call for is made of several.
/// `scratch` is a word of device memory, for the barrier.
/// A call's input and output are not the same for all_to_all.
void add_to_group(const NcclTarget& target, const Call& call, void* scratch);

}  // namespace fleetrun::collective
