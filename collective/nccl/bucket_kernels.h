// collective/cpu/flatten.h on a GPU: tensors into a bucket and back, scaled, converted, and looked through
// for what is not finite, in one pass over the GPU's memory. The kernels (bucket_kernels.cu) are part of the
// program, compiled for all GPUs since Turing (2018), and are loaded when the first BucketKernels is made.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <memory>
#include <span>
#include <string>

#include "collective/base/communicator.h"
#include "collective/nccl/nccl_library.h"

namespace fleetrun::collective {

/// Threads: any. Functions return when the work is on `stream`, whose device is the calling thread's; the
/// tensors stay until it is done. `not_finite`: a word of the GPU's memory, set to 1 where something that was
/// written is not finite and else left
/// alone; nullptr: nobody asks.   Throws: as collective/cpu/flatten.h; Error(host) with CUDA's words.
class BucketKernels {
 public:
  /// Throws: Error(host) where the driver is not there or older than CUDA 12.
  explicit BucketKernels(const CudaRuntime& cuda, const std::string& driver = "libcuda.so.1");
  ~BucketKernels();
  BucketKernels(const BucketKernels&) = delete;
  BucketKernels& operator=(const BucketKernels&) = delete;

  void flatten(std::span<const ConstBuffer> tensors, Buffer bucket, double scale, unsigned* not_finite,
               cudaStream_t stream) const;
  void unflatten(ConstBuffer bucket, std::span<const Buffer> tensors, double scale, unsigned* not_finite,
                 cudaStream_t stream) const;

 private:
  struct Driver;
  struct Copies;
  void launch(const Copies& copies, double scale, unsigned* not_finite, cudaStream_t stream) const;

  const CudaRuntime& cuda_;
  std::unique_ptr<Driver> driver_;
};

}  // namespace fleetrun::collective
