// Loops that the compiler turns into AVX-512 or AVX2 code where the processor has it, though the build is for
// any x86-64: the body is compiled three times and chosen once per process. Bodies are lambdas marked
// always_inline over plain pointers; results may differ in the last bit between processors of different
// kinds, never between two runs on one.
//
// The functions below are float32 approximations within 2 units in the last place (log: 3), branch-free so
// that they vectorise; NaN and infinities come out as in <cmath>.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace fleetrun::engine {

enum class Isa { baseline, avx2, avx512 };

inline Isa isa() noexcept {
#if defined(__x86_64__)
  static const Isa best = [] {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
      return Isa::avx512;
    }
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? Isa::avx2 : Isa::baseline;
  }();
  return best;
#else
  return Isa::baseline;
#endif
}

#if defined(__x86_64__)
template <class Body>
[[gnu::target("avx2,fma")]] void run_avx2(const Body& body) {
  body();
}
template <class Body>
[[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,prefer-vector-width=512")]] void run_avx512(
    const Body& body) {
  body();
}
#endif

/// Runs `body`, a lambda marked always_inline.
template <class Body>
void vectorized(const Body& body) {
#if defined(__x86_64__)
  switch (isa()) {
    case Isa::avx512:
      return run_avx512(body);
    case Isa::avx2:
      return run_avx2(body);
    case Isa::baseline:
      break;
  }
#endif
  body();
}

namespace vector_math {

/// Source: Cephes expf (range reduction by ln 2 in two parts, polynomial of degree 5).
[[gnu::always_inline]] inline float exp(float x) {
  constexpr float kMax = 88.7228394f, kMin = -87.3365448f, kRound = 12582912.0f;
  float bounded = x < kMin ? kMin : x;
  bounded = bounded > kMax ? kMax : bounded;
  const float n = (bounded * 1.44269504088896341f + kRound) - kRound;
  float r = bounded - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float y = p * r * r + r + 1.0f;
  // Two factors, because 2^128 is not a float.
  const auto whole = static_cast<std::int32_t>(n);
  const std::int32_t half = whole >> 1;
  const float scale = std::bit_cast<float>((half + 127) << 23);
  const float rest = std::bit_cast<float>((whole - half + 127) << 23);
  float result = y * scale * rest;
  result = x < kMin ? 0.0f : result;
  result = x > kMax ? std::numeric_limits<float>::infinity() : result;
  return x != x ? x : result;
}

/// Source: Cephes logf.
[[gnu::always_inline]] inline float log(float x) {
  constexpr float kMin = 1.17549435e-38f;
  const bool tiny = x < kMin;
  const float scaled = tiny ? x * 8388608.0f : x;
  const auto bits = std::bit_cast<std::int32_t>(scaled);
  std::int32_t exponent = ((bits >> 23) & 0xff) - 126;
  float m = std::bit_cast<float>((bits & 0x007fffff) | 0x3f000000);
  const bool low = m < 0.707106781186547524f;
  exponent -= low ? 1 : 0;
  exponent -= tiny ? 23 : 0;
  m = (low ? m + m : m) - 1.0f;
  const auto e = static_cast<float>(exponent);
  const float z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  float y = p * m * z;
  y = y - e * 2.12194440e-4f;
  y = y - 0.5f * z;
  float result = m + y + e * 0.693359375f;
  result = x == 0.0f ? -std::numeric_limits<float>::infinity() : result;
  result = x < 0.0f ? std::numeric_limits<float>::quiet_NaN() : result;
  result = x == std::numeric_limits<float>::infinity() ? x : result;
  return x != x ? x : result;
}

[[gnu::always_inline]] inline float sigmoid(float x) {
  return 1.0f / (1.0f + vector_math::exp(-x));
}

/// Source: Cephes tanhf.
[[gnu::always_inline]] inline float tanh(float x) {
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float small = x + x * z * p;
  const float large = 1.0f - 2.0f / (vector_math::exp(x + x) + 1.0f);
  const float size = x < 0.0f ? -x : x;
  return size < 0.625f ? small : large;
}

// Of float64 what <cmath> has.
inline double exp(double x) {
  return std::exp(x);
}
inline double log(double x) {
  return std::log(x);
}
inline double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}
inline double tanh(double x) {
  return std::tanh(x);
}

}  // namespace vector_math

/// Σ x[i] in sixteen running sums: the order, and so the result, depends on `size` only.
[[gnu::always_inline]] inline float sum_of(const float* x, std::size_t size) {
  float lanes[16] = {};
  std::size_t i = 0;
  for (; i + 16 <= size; i += 16) {
    for (std::size_t k = 0; k < 16; ++k) lanes[k] += x[i + k];
  }
  float rest = 0.0f;
  for (; i < size; ++i) rest += x[i];
  for (std::size_t step = 8; step > 0; step /= 2) {
    for (std::size_t k = 0; k < step; ++k) lanes[k] += lanes[k + step];
  }
  return lanes[0] + rest;
}

}  // namespace fleetrun::engine
