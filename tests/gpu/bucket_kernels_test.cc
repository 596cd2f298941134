#include "collective/nccl/bucket_kernels.h"

#include <doctest/doctest.h>

#include "tests/support/bucket_check.h"

using namespace fleetrun::collective;
using namespace fleetrun::tests;

TEST_CASE("the GPU's buckets have the bits of the host's, between all types") {
  constexpr DataType kFloats[] = {DataType::float32, DataType::float64, DataType::float16,
                                  DataType::bfloat16};
  const CudaRuntime cuda(GpuLibraryNames{}.cuda_runtime);
  cuda.check(cuda.cudaFree(nullptr), "beginning");  // makes the device's context the thread's
  BucketCheck check(cuda, "libcuda.so.1");
  for (const DataType type : kFloats)
    for (const DataType bucket : kFloats)
      for (const double scale : {1.0, 0.125, 0.3}) check.run(type, bucket, scale);
}

TEST_CASE("the GPU flags what is not finite, wherever it is") {
  const CudaRuntime cuda(GpuLibraryNames{}.cuda_runtime);
  cuda.check(cuda.cudaFree(nullptr), "beginning");
  BucketCheck check(cuda, "libcuda.so.1");
  for (const std::size_t at : {0u, 3u, 4u, 8191u, 8192u, 19997u, 19999u}) CHECK(check.is_found(at, 20000));
}
