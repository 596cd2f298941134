// As collective/cpu/reduce_kernels: one body, compiled for each kind of processor; elements are read and
// written by memcpy, so that buffers need no alignment. Not finite is: all bits of the exponent are set,
// which is collected without branches.
#include "collective/cpu/convert.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "collective/cpu/half.h"

namespace fleetrun::collective {
namespace {

constexpr std::size_t kBlock = 1024;  // elements between two looks at what was collected

template <class Bits>
[[gnu::always_inline]] inline Bits load(const std::byte* bytes, std::size_t i) {
  Bits bits;
  std::memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
  return bits;
}

struct Float32 {
  using Bits = std::uint32_t;
  static constexpr Bits kExponent = 0x7f800000u;
  [[gnu::always_inline]] static float number(Bits bits) { return std::bit_cast<float>(bits); }
  template <class Number>
  [[gnu::always_inline]] static Bits bits(Number number) {
    return std::bit_cast<Bits>(static_cast<float>(number));
  }
};
struct Float64 {
  using Bits = std::uint64_t;
  static constexpr Bits kExponent = 0x7ff0000000000000u;
  [[gnu::always_inline]] static double number(Bits bits) { return std::bit_cast<double>(bits); }
  template <class Number>
  [[gnu::always_inline]] static Bits bits(Number number) {
    return std::bit_cast<Bits>(static_cast<double>(number));
  }
};

/// A double as the float that rounds to the same narrower number:
/// the last place says that something was cut off.
[[gnu::always_inline]] inline float narrowed(double number) {
  const float nearest = static_cast<float>(number);
  const double back = nearest;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  // Where it was rounded away from zero, one step back; then the last bit is set unless nothing was lost.
  const bool is_larger = (back < 0 ? -back : back) > (number < 0 ? -number : number);
  const bool is_exact = back == number || number != number;
  const std::uint32_t towards_zero = bits - (is_larger ? 1u : 0u);
  return std::bit_cast<float>(is_exact ? bits : towards_zero | 1u);
}
[[gnu::always_inline]] inline float narrowed(float number) {
  return number;
}

struct Float16 {
  using Bits = std::uint16_t;
  static constexpr Bits kExponent = 0x7c00u;
  [[gnu::always_inline]] static float number(Bits bits) { return from_float16(bits); }
  template <class Number>
  [[gnu::always_inline]] static Bits bits(Number number) {
    return to_float16(narrowed(number));
  }
};
struct BFloat16 {
  using Bits = std::uint16_t;
  static constexpr Bits kExponent = 0x7f80u;
  [[gnu::always_inline]] static float number(Bits bits) { return from_bfloat16(bits); }
  template <class Number>
  [[gnu::always_inline]] static Bits bits(Number number) {
    return to_bfloat16(narrowed(number));
  }
};

struct Job {
  const std::byte* input;
  std::byte* output;
  std::size_t count;
  double scale;
};

template <class From, class To>
[[gnu::always_inline]] inline bool convert_job(const Job& job) {
  constexpr bool kWide = std::is_same_v<From, Float64> || std::is_same_v<To, Float64>;
  using Number = std::conditional_t<kWide, double, float>;
  const auto scale = static_cast<Number>(job.scale);
  // Copies: what is written might be `job`, for all that the compiler knows.
  const std::byte* const input = job.input;
  std::byte* const output = job.output;
  const std::size_t count = job.count;
  typename To::Bits found = 0;
  for (std::size_t from = 0; from < count; from += kBlock) {
    const std::size_t end = count - from < kBlock ? count : from + kBlock;
#pragma GCC ivdep
    for (std::size_t i = from; i < end; ++i) {
      const auto number = static_cast<Number>(From::number(load<typename From::Bits>(input, i)));
      const typename To::Bits bits = To::bits(number * scale);
      std::memcpy(output + i * sizeof bits, &bits, sizeof bits);
      // Adding one to a full exponent carries into the bit above it.
      found |= static_cast<typename To::Bits>((bits & To::kExponent) + (To::kExponent & -To::kExponent));
    }
  }
  constexpr auto kTop =
      static_cast<typename To::Bits>(typename To::Bits{1} << (8 * sizeof(typename To::Bits) - 1));
  return (found & kTop) == 0;
}

#if defined(__x86_64__)
template <class From, class To>
[[gnu::target("avx2,f16c")]] bool convert_avx2(const Job& job) {
  return convert_job<From, To>(job);
}
template <class From, class To>
[[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx2,prefer-vector-width=512")]] bool convert_avx512(
    const Job& job) {
  return convert_job<From, To>(job);
}
#endif

template <class From, class To>
bool convert_with(const Job& job, Vectors vectors) {
#if defined(__x86_64__)
  if (vectors == Vectors::avx512) return convert_avx512<From, To>(job);
  if (vectors == Vectors::avx2) return convert_avx2<From, To>(job);
#else
  static_cast<void>(vectors);
#endif
  return convert_job<From, To>(job);
}

template <class From>
bool convert_from(const Job& job, DataType to, Vectors vectors) {
  switch (to) {
    case DataType::float64:
      return convert_with<From, Float64>(job, vectors);
    case DataType::float16:
      return convert_with<From, Float16>(job, vectors);
    case DataType::bfloat16:
      return convert_with<From, BFloat16>(job, vectors);
    default:
      return convert_with<From, Float32>(job, vectors);
  }
}

}  // namespace

bool convert(DataType from, const void* input, DataType to, void* output, std::size_t count, double scale,
             Vectors vectors) noexcept {
  const Job job{static_cast<const std::byte*>(input), static_cast<std::byte*>(output), count, scale};
  switch (from) {
    case DataType::float64:
      return convert_from<Float64>(job, to, vectors);
    case DataType::float16:
      return convert_from<Float16>(job, to, vectors);
    case DataType::bfloat16:
      return convert_from<BFloat16>(job, to, vectors);
    default:
      return convert_from<Float32>(job, to, vectors);
  }
}

}  // namespace fleetrun::collective
