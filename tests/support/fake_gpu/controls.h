// What a test can set and see of the fake CUDA runtime and the fake NCCL (fake_cudart.cc, fake_nccl.cc): the
// libraries that collective/nccl loads in tests on machines without a GPU. Device memory is host memory, a
// stream is a thread that runs what it is given in order, ranks are threads of one process.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>

namespace fleetrun::tests {

struct FakeCuda {
  int runtime_version = 13000, driver_version = 13000, devices = 8;
};
/// Of the process; a test puts back what it changes.
FakeCuda& fake_cuda();
/// Bytes of device and pinned memory, streams and events that were made and not given back.
long fake_cuda_held();

struct FakeNcclCounts {
  std::atomic<long> collectives = 0, sends = 0, receives = 0;  // as they were started, by all ranks
  std::atomic<long> groups = 0;                                // of one call or more
  std::atomic<long> aborted = 0, destroyed = 0, shrunk = 0, revoked = 0;
};
struct FakeNccl {
  int version = 22809;
  FakeNcclCounts counts;
};
FakeNccl& fake_nccl();
/// What ncclCommGetAsyncError says from now on of all communicators' rank `rank`.
void fake_nccl_fails(int rank, ncclResult_t result);

}  // namespace fleetrun::tests
