// The kernels' code is a table of bytes that nvcc made (collective/nccl/meson.build); the driver loads it, so
// that this program is linked to no library of CUDA's.
#include "collective/nccl/bucket_kernels.h"

#include <cuda.h>

#include "collective/cpu/flatten.h"
#include "collective/nccl/bucket_kernels_code.h"
#include "collective/nccl/bucket_segments.h"

namespace fleetrun::collective {
namespace {

constexpr std::array kFloats = {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16};

std::size_t index_of(DataType type) {
  for (std::size_t i = 0; i < kFloats.size(); ++i)
    if (kFloats[i] == type) return i;
  return 0;
}

}  // namespace

struct BucketKernels::Driver {
  template <class Type>
  using Function = LibraryFunction<Type>;
  SharedLibrary library;
  Function<CUresult(CUlibrary*, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**,
                    unsigned)>
      cuLibraryLoadData{library, "cuLibraryLoadData"};
  Function<CUresult(CUkernel*, CUlibrary, const char*)> cuLibraryGetKernel{library, "cuLibraryGetKernel"};
  Function<CUresult(CUlibrary)> cuLibraryUnload{library, "cuLibraryUnload"};
  Function<CUresult(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                    CUstream, void**, void**)>
      cuLaunchKernel{library, "cuLaunchKernel"};
  Function<CUresult(CUresult, const char**)> cuGetErrorString{library, "cuGetErrorString"};

  explicit Driver(const std::string& name)
      : library(name.c_str(), "bringing gradients into buckets on a GPU",
                "install NVIDIA's driver for CUDA 12 or later, or train on CPUs") {}
  ~Driver() {
    if (code) cuLibraryUnload(code);
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  void check(CUresult result, const std::string& what) const {
    if (result == CUDA_SUCCESS) return;
    const char* text = nullptr;
    cuGetErrorString(result, &text);
    throw Error(ErrorKind::host, what + ": CUDA says: " + (text ? text : "error " + std::to_string(result)),
                "bucket kernels need a GPU of compute capability 7.5 or later and a driver of CUDA " +
                    cuda_version_text(CUDA_VERSION) + " or later");
  }

  CUlibrary code = nullptr;
  std::array<std::array<CUkernel, kFloats.size()>, kFloats.size()> kernels = {};
};

/// What is to be read and written, all of it of the same types.
struct BucketKernels::Copies {
  DataType from, to;
  std::vector<BucketSegment> segments;
};

BucketKernels::BucketKernels(const CudaRuntime& cuda, const std::string& driver)
    : cuda_(cuda), driver_(std::make_unique<Driver>(driver)) {
  driver_->check(driver_->cuLibraryLoadData(&driver_->code, fleetrun_bucket_kernels, nullptr, nullptr, 0u,
                                            nullptr, nullptr, 0u),
                 "loading the bucket kernels");
  for (std::size_t from = 0; from < kFloats.size(); ++from) {
    for (std::size_t to = 0; to < kFloats.size(); ++to) {
      const std::string name =
          "fleetrun_" + std::string(to_string(kFloats[from])) + "_to_" + std::string(to_string(kFloats[to]));
      driver_->check(driver_->cuLibraryGetKernel(&driver_->kernels[from][to], driver_->code, name.c_str()),
                     "finding " + name);
    }
  }
}

BucketKernels::~BucketKernels() = default;

void BucketKernels::launch(const Copies& copies, double scale, unsigned* not_finite,
                           cudaStream_t stream) const {
  if (!is_floating(copies.from)) {
    for (const BucketSegment& segment : copies.segments) {
      if (segment.count == 0) continue;
      cuda_.check(cuda_.cudaMemcpyAsync(segment.to, segment.from, segment.count * size_of(copies.from),
                                        cudaMemcpyDeviceToDevice, stream),
                  "copying a tensor");
    }
    return;
  }
  const CUkernel kernel = driver_->kernels[index_of(copies.from)][index_of(copies.to)];
  for (BucketSegments& launch : plan_launches(copies.segments)) {
    std::array<void*, 3> arguments{&launch, &scale, &not_finite};
    // A kernel of a library is launched as a function of the current device's context.
    driver_->check(driver_->cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), launch.blocks, 1u, 1u,
                                           kBlockThreads, 1u, 1u, 0u, stream, arguments.data(), nullptr),
                   "launching a bucket kernel");
  }
}

void BucketKernels::flatten(std::span<const ConstBuffer> tensors, Buffer bucket, double scale,
                            unsigned* not_finite, cudaStream_t stream) const {
  check_flatten(tensors, {bucket.data, bucket.count, bucket.type}, scale);
  if (tensors.empty()) return;
  Copies copies{tensors[0].type, bucket.type, {}};
  auto* to = static_cast<std::byte*>(bucket.data);
  for (const ConstBuffer& tensor : tensors) {
    copies.segments.push_back({tensor.data, to, tensor.count});
    to += tensor.count * size_of(bucket.type);
  }
  launch(copies, scale, not_finite, stream);
}

void BucketKernels::unflatten(ConstBuffer bucket, std::span<const Buffer> tensors, double scale,
                              unsigned* not_finite, cudaStream_t stream) const {
  std::vector<ConstBuffer> shapes;
  for (const Buffer& tensor : tensors) shapes.push_back({tensor.data, tensor.count, tensor.type});
  check_flatten(shapes, bucket, scale);
  if (tensors.empty()) return;
  Copies copies{bucket.type, tensors[0].type, {}};
  const auto* from = static_cast<const std::byte*>(bucket.data);
  for (const Buffer& tensor : tensors) {
    copies.segments.push_back({from, tensor.data, tensor.count});
    from += tensor.count * size_of(bucket.type);
  }
  launch(copies, scale, not_finite, stream);
}

}  // namespace fleetrun::collective
