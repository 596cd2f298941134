// One pass over memory: each element is read, multiplied by `scale`, rounded once and written, and what is
// not finite then is reported. Arithmetic as collective/cpu/flatten.h says. Bound by memory: four elements a
// load where both sides are aligned.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "collective/nccl/bucket_segments.h"

namespace {

using fleetrun::collective::BucketSegment;
using fleetrun::collective::BucketSegments;
using fleetrun::collective::kBlockElements;
using fleetrun::collective::kBlockThreads;

template <class From>
struct Number {
  using type = float;
};
template <>
struct Number<double> {
  using type = double;
};

template <class Wide>
__device__ Wide widened(float value) {
  return value;
}
template <class Wide>
__device__ Wide widened(double value) {
  return value;
}
template <class Wide>
__device__ Wide widened(__half value) {
  return __half2float(value);
}
template <class Wide>
__device__ Wide widened(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

template <class To>
struct Rounded;
template <>
struct Rounded<float> {
  static __device__ float of(float value) { return value; }
  static __device__ float of(double value) { return __double2float_rn(value); }
  static __device__ bool is_finite(float value) { return isfinite(value); }
};
template <>
struct Rounded<double> {
  static __device__ double of(double value) { return value; }
  static __device__ bool is_finite(double value) { return isfinite(value); }
};
template <>
struct Rounded<__half> {
  static __device__ __half of(float value) { return __float2half_rn(value); }
  static __device__ __half of(double value) { return __double2half(value); }
  static __device__ bool is_finite(__half value) { return (__half_as_ushort(value) & 0x7c00) != 0x7c00; }
};
template <>
struct Rounded<__nv_bfloat16> {
  static __device__ __nv_bfloat16 of(float value) { return __float2bfloat16_rn(value); }
  static __device__ __nv_bfloat16 of(double value) { return __double2bfloat16(value); }
  static __device__ bool is_finite(__nv_bfloat16 value) {
    return (__bfloat16_as_ushort(value) & 0x7f80) != 0x7f80;
  }
};

template <class Value>
struct alignas(4 * sizeof(Value)) Four {
  Value values[4];
};

template <class From, class To, class Wide>
__device__ bool convert(const From& from, To& to, Wide scale) {
  to = Rounded<To>::of(widened<Wide>(from) * scale);
  return Rounded<To>::is_finite(to);
}

template <class From, class To>
__device__ void convert_block(const BucketSegments& launch, double by, unsigned* not_finite) {
  using Wide = decltype(typename Number<From>::type{} + typename Number<To>::type{});
  const Wide scale = static_cast<Wide>(by);
  const BucketSegment& segment = launch.list[segment_of(launch, blockIdx.x)];
  const std::uint64_t begin = (blockIdx.x - segment.first_block) * kBlockElements;
  const std::uint64_t rest = segment.count - begin;
  const std::uint32_t count = rest < kBlockElements ? static_cast<std::uint32_t>(rest) : kBlockElements;
  const From* const from = static_cast<const From*>(segment.from) + begin;
  To* const to = static_cast<To*>(segment.to) + begin;
  bool is_finite = true;
  std::uint32_t done = 0;
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(from) % sizeof(Four<From>) == 0 &&
                          reinterpret_cast<std::uintptr_t>(to) % sizeof(Four<To>) == 0;
  if (is_aligned) {
    const std::uint32_t fours = count / 4;
#pragma unroll 4
    for (std::uint32_t i = threadIdx.x; i < fours; i += kBlockThreads) {
      const Four<From> in = reinterpret_cast<const Four<From>*>(from)[i];
      Four<To> out;
#pragma unroll
      for (int k = 0; k < 4; ++k) is_finite &= convert(in.values[k], out.values[k], scale);
      reinterpret_cast<Four<To>*>(to)[i] = out;
    }
    done = fours * 4;
  }
#pragma unroll 4
  for (std::uint32_t i = done + threadIdx.x; i < count; i += kBlockThreads)
    is_finite &= convert(from[i], to[i], scale);
  if (not_finite && __syncthreads_or(!is_finite) && threadIdx.x == 0) *not_finite = 1;
}

}  // namespace

// One kernel for each pair of types, found by its name: collective/nccl/bucket_kernels.cc.
// The one macro here: a template has no name that is the same for all compilers.
#define FLEETRUN_KERNEL(from_name, From, to_name, To)                                              \
  extern "C" __global__ void __launch_bounds__(kBlockThreads) fleetrun_##from_name##_to_##to_name( \
      const __grid_constant__ BucketSegments launch, double scale, unsigned* not_finite) {         \
    convert_block<From, To>(launch, scale, not_finite);                                            \
  }
#define FLEETRUN_KERNELS_FROM(from_name, From)      \
  FLEETRUN_KERNEL(from_name, From, float32, float)  \
  FLEETRUN_KERNEL(from_name, From, float64, double) \
  FLEETRUN_KERNEL(from_name, From, float16, __half) \
  FLEETRUN_KERNEL(from_name, From, bfloat16, __nv_bfloat16)

FLEETRUN_KERNELS_FROM(float32, float)
FLEETRUN_KERNELS_FROM(float64, double)
FLEETRUN_KERNELS_FROM(float16, __half)
FLEETRUN_KERNELS_FROM(bfloat16, __nv_bfloat16)
