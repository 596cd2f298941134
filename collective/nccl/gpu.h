// Communicators between GPUs, for code that knows nothing of CUDA. Where this fleetrun was built without
// NCCL's header, collective/nccl/gpu_left_out.cc says so;
// where it was, the libraries are loaded when the first communicator is made.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "collective/base/communicator.h"
#include "collective/base/time_limit.h"
#include "collective/store/store.h"

namespace fleetrun::collective {

struct GpuOptions {
  /// Of this rank, as CUDA counts those that it sees (CUDA_VISIBLE_DEVICES).
  int device = 0;
  /// The cudaStream_t that makes the inputs; nullptr: the legacy default stream.
  void* caller_stream = nullptr;
  /// Used in turn, so that as many calls are under way at once: `nccl_comm_num`.
  int communicators = 1;
  /// Of collective/base/grouping.h: all_reduce in two levels (`use_hierarchical_allreduce`).
  /// Empty: all ranks alike.
  std::vector<std::vector<int>> groups = {};
  /// Every call is compared between the ranks, on the GPU.
  bool checks_calls = true;
  std::chrono::milliseconds meet_within{std::chrono::minutes(5)};
  TimeLimit call_within{std::chrono::minutes(30)};
};

/// Whether this fleetrun was built with NCCL; nothing is loaded.
bool has_gpu_communicators() noexcept;

/// Meets the other ranks. `prefix` is the communicator's own in the store, the same on all ranks. Buffers of
/// its calls are memory of its device; its works end before it does.
/// Throws: Error(host) where the CUDA runtime, NCCL, a driver or a GPU is missing, or all of it was left out
/// of this build; Error(timeout) naming the ranks that did not come; Error(config) where they disagree.
std::unique_ptr<Communicator> make_gpu_communicator(const Place& place, Store& store,
                                                    const std::string& prefix, const GpuOptions& options);

}  // namespace fleetrun::collective
