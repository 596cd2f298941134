// The part of the CUDA driver that loads and launches the bucket kernels: each block's work is done on the
// host by collective/cpu/convert, in the order of the stream,
// so that what is launched is checked and not how a GPU does it.
#include <cuda.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "collective/cpu/convert.h"
#include "collective/nccl/bucket_segments.h"
#include "tests/support/fake_gpu/controls.h"

using namespace fleetrun::collective;

struct CUlib_st {};
struct CUkern_st {
  DataType from, to;
};

namespace {

std::optional<DataType> type_of(const std::string& name) {
  for (const DataType type : {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16})
    if (name == to_string(type)) return type;
  return {};
}

void run_block(const CUkern_st& kernel, const BucketSegments& launch, std::uint32_t block, double scale,
               unsigned* flag) {
  const BucketSegment& segment = launch.list[segment_of(launch, block)];
  const std::uint64_t begin = (block - segment.first_block) * kBlockElements;
  const std::uint64_t count = std::min<std::uint64_t>(segment.count - begin, kBlockElements);
  const auto* from = static_cast<const std::byte*>(segment.from) + begin * size_of(kernel.from);
  auto* to = static_cast<std::byte*>(segment.to) + begin * size_of(kernel.to);
  const bool is_finite = convert(kernel.from, from, kernel.to, to, count, scale, Vectors::baseline);
  if (!is_finite && flag) *flag = 1;
}

}  // namespace

extern "C" {

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) {
  std::uint32_t magic = 0;
  std::memcpy(&magic, code, sizeof magic);
  if (magic != 0xba55ed50u) return CUDA_ERROR_INVALID_IMAGE;  // how nvcc's files of several GPUs begin
  *library = new CUlib_st;
  return CUDA_SUCCESS;
}
CUresult cuLibraryUnload(CUlibrary library) {
  delete library;
  return CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary, const char* name) {
  const std::string text = name, begin = "fleetrun_";
  const std::size_t middle = text.find("_to_");
  if (!text.starts_with(begin) || middle == std::string::npos) return CUDA_ERROR_NOT_FOUND;
  const auto from = type_of(text.substr(begin.size(), middle - begin.size())),
             to = type_of(text.substr(middle + 4));
  if (!from || !to) return CUDA_ERROR_NOT_FOUND;
  static CUkern_st kernels[kDataTypes][kDataTypes];
  CUkern_st& found = kernels[static_cast<int>(*from)][static_cast<int>(*to)];
  found = {*from, *to};
  *kernel = &found;
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned blocks, unsigned y, unsigned z, unsigned threads,
                        unsigned, unsigned, unsigned, CUstream stream, void** arguments, void**) {
  const BucketSegments launch = *static_cast<BucketSegments*>(arguments[0]);
  if (y != 1 || z != 1 || threads != kBlockThreads || blocks != launch.blocks || blocks == 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto task = new std::function<void()>([kernel = *reinterpret_cast<CUkern_st*>(function), launch,
                                               scale = *static_cast<double*>(arguments[1]),
                                               flag = *static_cast<unsigned**>(arguments[2])] {
    for (std::uint32_t block = launch.blocks; block-- > 0;) run_block(kernel, launch, block, scale, flag);
  });
  cudaLaunchHostFunc(
      stream,
      [](void* data) {
        const std::unique_ptr<std::function<void()>> run(static_cast<std::function<void()>*>(data));
        (*run)();
      },
      task);
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "the fake driver refuses";
  return CUDA_SUCCESS;
}

}  // extern "C"
