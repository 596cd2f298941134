// Whether bucket kernels give the bits that collective/cpu/flatten gives, for all pairs of types: on the fake
// GPU in CI, on a real one in tests/gpu.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <vector>

#include "collective/nccl/bucket_kernels.h"
#include "collective/nccl/device.h"
#include "tests/support/bucket_cases.h"

namespace fleetrun::tests {

class BucketCheck {
 public:
  explicit BucketCheck(const collective::CudaRuntime& cuda, const std::string& driver)
      : cuda_(cuda), kernels_(cuda, driver), stream_(cuda), flag_(cuda, sizeof(unsigned), Where::device) {}

  /// Flatten and unflatten between two types, both against the host.
  void run(collective::DataType type, collective::DataType bucket_type, double scale) {
    using namespace collective;
    const std::vector<std::size_t> sizes = bucket_sizes(random_);
    const LaidOut laid = lay_out(sizes, size_of(type));
    std::size_t count = 0;
    for (const std::size_t size : sizes) count += size;
    const auto values = bucket_values(type, laid.bytes / size_of(type), random_);
    GpuMemory device(cuda_, laid.bytes, Where::device),
        bucket(cuda_, count * size_of(bucket_type), Where::device);
    std::vector<std::byte> host = values, host_bucket(count * size_of(bucket_type));

    write(device, host);
    clear_flag();
    kernels_.flatten(inputs(device.data(), sizes, laid, type), {bucket.data(), count, bucket_type}, scale,
                     flag(), stream());
    const bool is_finite =
        flatten(inputs(host.data(), sizes, laid, type), {host_bucket.data(), count, bucket_type}, scale);
    CHECK(read(bucket, host_bucket.size()) == host_bucket);
    CHECK(is_flagged() == !is_finite);

    kernels_.unflatten({bucket.data(), count, bucket_type}, outputs(device.data(), sizes, laid, type), 0.25,
                       flag(), stream());
    unflatten({host_bucket.data(), count, bucket_type}, outputs(host.data(), sizes, laid, type), 0.25);
    CHECK(read(device, host.size()) == host);
  }

  /// An infinity in the element `at` of a bucket of float16 is flagged.
  bool is_found(std::size_t at, std::size_t count) {
    using namespace collective;
    std::vector<std::byte> host(count * 2);
    const std::uint16_t infinity = 0xfc00;
    std::memcpy(host.data() + at * 2, &infinity, 2);
    GpuMemory from(cuda_, host.size(), Where::device), to(cuda_, 2 * host.size(), Where::device);
    write(from, host);
    clear_flag();
    const Buffer tensor{to.data(), count, DataType::float32};
    kernels_.unflatten({from.data(), count, DataType::float16}, {&tensor, 1}, 0.5, flag(), stream());
    return is_flagged();
  }

 private:
  using Where = collective::GpuMemory::Where;

  cudaStream_t stream() const { return stream_.value(); }
  unsigned* flag() const { return reinterpret_cast<unsigned*>(flag_.data()); }
  void copy(void* to, const void* from, std::size_t bytes) {
    cuda_.check(cuda_.cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream()), "copying");
    cuda_.check(cuda_.cudaStreamSynchronize(stream()), "waiting");
  }
  void write(const collective::GpuMemory& to, const std::vector<std::byte>& from) {
    copy(to.data(), from.data(), from.size());
  }
  std::vector<std::byte> read(const collective::GpuMemory& from, std::size_t bytes) {
    std::vector<std::byte> host(bytes);
    copy(host.data(), from.data(), bytes);
    return host;
  }
  void clear_flag() {
    cuda_.check(cuda_.cudaMemsetAsync(flag_.data(), 0, sizeof(unsigned), stream()), "clearing");
  }
  bool is_flagged() {
    unsigned flag = 7;
    copy(&flag, flag_.data(), sizeof flag);
    return flag != 0;
  }
  static std::vector<collective::Buffer> outputs(std::byte* data, const std::vector<std::size_t>& sizes,
                                                 const LaidOut& laid, collective::DataType type) {
    std::vector<collective::Buffer> tensors;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      tensors.push_back({data + laid.offsets[i], sizes[i], type});
    return tensors;
  }
  static std::vector<collective::ConstBuffer> inputs(const std::byte* data,
                                                     const std::vector<std::size_t>& sizes,
                                                     const LaidOut& laid, collective::DataType type) {
    std::vector<collective::ConstBuffer> tensors;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      tensors.push_back({data + laid.offsets[i], sizes[i], type});
    return tensors;
  }

  const collective::CudaRuntime& cuda_;
  collective::BucketKernels kernels_;
  collective::Stream stream_;
  collective::GpuMemory flag_;
  std::mt19937_64 random_{5};
};

}  // namespace fleetrun::tests
