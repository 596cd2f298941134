// What is launched for a bucket: the list of tensors, its pieces, the kernels by name. The fake driver does
// each block's work on the host; that the kernels themselves do it is tests/gpu's to show.
#include "collective/nccl/bucket_kernels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>

#include "collective/nccl/bucket_segments.h"
#include "tests/support/bucket_check.h"
#include "tests/support/fake_gpu/controls.h"

using namespace fleetrun;
using namespace fleetrun::collective;
using namespace fleetrun::tests;

namespace {
constexpr DataType kFloats[] = {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16};
}  // namespace

TEST_CASE("every element of every tensor is in one block of one launch") {
  std::vector<BucketSegment> segments;
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    segments.push_back({nullptr, nullptr, i % 7 == 0 ? 0 : i * i % 50000});
    total += segments.back().count;
  }
  std::uint64_t covered = 0;
  for (const BucketSegments& launch : plan_launches(segments)) {
    CHECK(launch.segments <= kSegmentsOfLaunch);
    for (std::uint32_t block = 0; block < launch.blocks; ++block) {
      const std::uint32_t index = segment_of(launch, block);
      const BucketSegment& segment = launch.list[index];
      REQUIRE(index < launch.segments);
      const std::uint64_t begin = (block - segment.first_block) * kBlockElements;
      REQUIRE(segment.first_block <= block);
      REQUIRE(begin < segment.count);
      covered += std::min<std::uint64_t>(segment.count - begin, kBlockElements);
    }
  }
  CHECK(covered == total);
  CHECK(plan_launches({}).empty());
}

TEST_CASE("buckets are as on the host, between all types, of any number of tensors") {
  const CudaRuntime cuda({FAKE_CUDART});
  BucketCheck check(cuda, FAKE_CUDA_DRIVER);
  for (const DataType type : kFloats)
    for (const DataType bucket : kFloats) check.run(type, bucket, 0.125);
}

TEST_CASE("what is not finite is flagged, in the first and in the last element") {
  const CudaRuntime cuda({FAKE_CUDART});
  BucketCheck check(cuda, FAKE_CUDA_DRIVER);
  for (const std::size_t at : {0u, 8191u, 8192u, 19999u}) CHECK(check.is_found(at, 20000));
}

TEST_CASE("integers are copied, and what cannot be is refused as on the host") {
  const CudaRuntime cuda({FAKE_CUDART});
  const BucketKernels kernels(cuda, FAKE_CUDA_DRIVER);
  std::array<std::int32_t, 3> in{1, -2, 3}, out{};
  const ConstBuffer tensor{in.data(), in.size(), DataType::int32};
  kernels.flatten({&tensor, 1}, {out.data(), out.size(), DataType::int32}, 1, nullptr, nullptr);
  cuda.check(cuda.cudaStreamSynchronize(nullptr), "waiting");
  CHECK(out == in);
  CHECK_THROWS_WITH_AS(kernels.flatten({&tensor, 1}, {out.data(), 2, DataType::int32}, 1, nullptr, nullptr),
                       "a bucket of 2 elements for tensors of 3 together", Error);
}

TEST_CASE("a machine without the driver is told so") {
  const CudaRuntime cuda({FAKE_CUDART});
  try {
    const BucketKernels kernels(cuda, "libno-such-driver.so");
    FAIL("it was loaded");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::host);
    CHECK(std::string(error.what())
              .starts_with("bringing gradients into buckets on a GPU needs libno-such-driver.so: "));
    CHECK(error.hint() == "install NVIDIA's driver for CUDA 12 or later, or train on CPUs");
  }
}
