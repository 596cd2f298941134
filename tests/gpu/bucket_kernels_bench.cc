// How fast buckets are made on this machine's GPU, as a share of what a copy within its memory moves.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "collective/nccl/bucket_kernels.h"
#include "collective/nccl/device.h"

using namespace fleetrun;
using namespace fleetrun::collective;

namespace {

constexpr std::size_t kTensors = 161;  // as ResNet-50 has
constexpr std::size_t kElements = 1 << 20;

/// The median of 15 runs of 10 launches each, in seconds a launch.
double seconds(const CudaRuntime& cuda, cudaStream_t stream, const std::function<void()>& launch) {
  std::vector<double> times;
  for (int run = 0; run < 16; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 10; ++i) launch();
    cuda.check(cuda.cudaStreamSynchronize(stream), "waiting");
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 10);
  }
  times.erase(times.begin());
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void run() {
  constexpr DataType kFloats[] = {DataType::float32, DataType::float16, DataType::bfloat16,
                                  DataType::float64};
  const CudaRuntime cuda(GpuLibraryNames{}.cuda_runtime);
  cuda.check(cuda.cudaFree(nullptr), "beginning");
  const BucketKernels kernels(cuda);
  const Stream stream(cuda);
  const std::size_t all = kTensors * kElements;
  const GpuMemory tensors(cuda, all * 8, GpuMemory::Where::device),
      bucket(cuda, all * 8, GpuMemory::Where::device), flag(cuda, sizeof(unsigned), GpuMemory::Where::device);
  cuda.check(cuda.cudaMemsetAsync(tensors.data(), 0, all * 8, stream.value()), "clearing");
  const double copy = seconds(cuda, stream.value(), [&] {
    cuda.check(cuda.cudaMemcpyAsync(bucket.data(), tensors.data(), all * 4, cudaMemcpyDeviceToDevice,
                                    stream.value()),
               "copying");
  });
  const double peak = 2.0 * 4 * static_cast<double>(all) / copy;
  std::printf("copy within the GPU: %.0f GB/s\n", peak / 1e9);
  for (const DataType from : kFloats) {
    for (const DataType to : kFloats) {
      std::vector<ConstBuffer> list;
      for (std::size_t i = 0; i < kTensors; ++i)
        list.push_back({tensors.data() + i * kElements * size_of(from), kElements, from});
      const double time = seconds(cuda, stream.value(), [&] {
        kernels.flatten(list, {bucket.data(), all, to}, 0.5, reinterpret_cast<unsigned*>(flag.data()),
                        stream.value());
      });
      const double speed = static_cast<double>(all * (size_of(from) + size_of(to))) / time;
      std::printf("%zu tensors of %s as %s: %.0f GB/s, %.0f %% of the copy\n", kTensors,
                  to_string(from).data(), to_string(to).data(), speed / 1e9, 100 * speed / peak);
    }
  }
}

}  // namespace

int main() {
  try {
    run();
  } catch (const Error& error) {
    std::printf("%s\n", render(error, "bucket_kernels_bench").c_str());
    return 77;
  }
}
