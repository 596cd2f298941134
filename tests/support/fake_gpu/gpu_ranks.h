// Ranks as threads, each with a fake GPU of its own, and what a call on them needs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collective/nccl/device.h"
#include "collective/nccl/nccl_communicator.h"
#include "collective/store/memory_store.h"
#include "tests/support/fake_gpu/controls.h"
#include "tests/support/rank_threads.h"

namespace fleetrun::tests {

inline collective::GpuLibraryNames fake_gpu_names(const std::string& nccl = FAKE_NCCL) {
  return {.cuda_runtime = {FAKE_CUDART}, .nccl = {nccl}};
}

/// One job: the libraries and the store of its ranks.
struct GpuJob {
  explicit GpuJob(const std::string& nccl = FAKE_NCCL) : libraries(fake_gpu_names(nccl)) {}

  /// Rank `rank`'s communicator on device `rank`.
  std::unique_ptr<collective::NcclCommunicator> join(int rank, int size, collective::NcclOptions options = {},
                                                     const std::string& group = "world") {
    options.device = rank;
    return std::make_unique<collective::NcclCommunicator>(libraries, collective::Place{group, rank, size},
                                                          store, group, options);
  }

  collective::GpuLibraries libraries;
  collective::MemoryStore store;
};

/// Runs `body(communicator)` for every rank at once.
inline void run_gpu_ranks(GpuJob& job, int size, const collective::NcclOptions& options,
                          const std::function<void(collective::NcclCommunicator&)>& body) {
  run_ranks(size, [&](int rank) {
    const auto communicator = job.join(rank, size, options);
    body(*communicator);
  });
}

inline collective::Call all_reduce_of(std::vector<float>& values) {
  return {.kind = collective::CallKind::all_reduce,
          .input = values.data(),
          .output = values.data(),
          .count = values.size()};
}

/// What `action` throws.
template <class Action>
Error error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return Error(error.kind(), error.what(), error.hint());
  }
  return Error(ErrorKind::data, "nothing was thrown");
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace fleetrun::tests
