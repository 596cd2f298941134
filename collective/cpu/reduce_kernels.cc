// Loops over plain memory that the compiler vectorises; a body is compiled once for each kind of processor.
// Elements are read and written by memcpy, so that buffers need no alignment.
#include "collective/cpu/reduce_kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "collective/cpu/half.h"

namespace fleetrun::collective {
namespace {

template <class Value>
[[gnu::always_inline]] inline Value load(const std::byte* bytes, std::size_t i) {
  Value value;
  std::memcpy(&value, bytes + i * sizeof value, sizeof value);
  return value;
}

template <class Value>
[[gnu::always_inline]] inline void store(std::byte* bytes, std::size_t i, Value value) {
  std::memcpy(bytes + i * sizeof value, &value, sizeof value);
}

/// How a type is kept, and what it is computed in.
template <class Value>
struct Plain {
  using Number = Value;
  [[gnu::always_inline]] static Number get(const std::byte* bytes, std::size_t i) {
    return load<Value>(bytes, i);
  }
  [[gnu::always_inline]] static void put(std::byte* bytes, std::size_t i, Number value) {
    store(bytes, i, value);
  }
};

struct Float16 {
  using Number = float;
  [[gnu::always_inline]] static float get(const std::byte* bytes, std::size_t i) {
    return from_float16(load<std::uint16_t>(bytes, i));
  }
  [[gnu::always_inline]] static void put(std::byte* bytes, std::size_t i, float value) {
    store(bytes, i, to_float16(value));
  }
};

struct BFloat16 {
  using Number = float;
  [[gnu::always_inline]] static float get(const std::byte* bytes, std::size_t i) {
    return from_bfloat16(load<std::uint16_t>(bytes, i));
  }
  [[gnu::always_inline]] static void put(std::byte* bytes, std::size_t i, float value) {
    store(bytes, i, to_bfloat16(value));
  }
};

/// Unsigned and at least 32 bits wide: integers wrap around, and nothing is promoted to int.
template <class Number>
using Wrapping = std::conditional_t<(sizeof(Number) < 8), std::uint32_t, std::uint64_t>;

template <Operation kOperation, class Number>
[[gnu::always_inline]] inline Number combined(Number a, Number b) {
  if constexpr (kOperation == Operation::min || kOperation == Operation::max) {
    const bool first = kOperation == Operation::min ? a < b : a > b;
    if constexpr (std::is_floating_point_v<Number>)
      return (first || __builtin_isnan(a)) ? a : b;  // a NaN wins
    return first ? a : b;
  } else if constexpr (std::is_floating_point_v<Number>) {
    return kOperation == Operation::prod ? a * b : a + b;
  } else {
    using Bits = std::make_unsigned_t<Number>;
    const Wrapping<Number> x = static_cast<Bits>(a), y = static_cast<Bits>(b);
    if constexpr (kOperation == Operation::bit_and) return static_cast<Number>(x & y);
    if constexpr (kOperation == Operation::bit_or) return static_cast<Number>(x | y);
    if constexpr (kOperation == Operation::bit_xor) return static_cast<Number>(x ^ y);
    return static_cast<Number>(kOperation == Operation::prod ? x * y : x + y);
  }
}

template <Operation kOperation, class Number>
[[gnu::always_inline]] inline Number finished(Number value, int divisor) {
  if constexpr (kOperation != Operation::avg) return value;
  return static_cast<Number>(value / static_cast<std::common_type_t<Number, int>>(divisor));
}

struct Job {
  std::byte* output;
  std::span<const void* const> inputs;
  std::size_t count;
  int divisor;

  const std::byte* input(std::size_t i) const { return static_cast<const std::byte*>(inputs[i]); }
};

template <class Kept, Operation kOperation>
[[gnu::always_inline]] inline void reduce_two(const Job& job) {
  const std::byte *a = job.input(0), *b = job.input(1);
  std::byte* const output = job.output;
  const std::size_t count = job.count;
  const int divisor = job.divisor;
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    Kept::put(output, i,
              finished<kOperation>(combined<kOperation>(Kept::get(a, i), Kept::get(b, i)), divisor));
}

/// In blocks whose sums stay in the first cache.
template <class Kept, Operation kOperation>
[[gnu::always_inline]] inline void reduce_many(const Job& job) {
  using Number = typename Kept::Number;
  constexpr std::size_t kBlock = 512;
  Number sums[kBlock];
  for (std::size_t from = 0; from < job.count; from += kBlock) {
    const std::size_t block = std::min(kBlock, job.count - from);
    const std::byte* const first = job.input(0);
#pragma GCC ivdep
    for (std::size_t i = 0; i < block; ++i) sums[i] = Kept::get(first, from + i);
    for (std::size_t k = 1; k < job.inputs.size(); ++k) {
      const std::byte* const next = job.input(k);
#pragma GCC ivdep
      for (std::size_t i = 0; i < block; ++i)
        sums[i] = combined<kOperation>(sums[i], Kept::get(next, from + i));
    }
#pragma GCC ivdep
    for (std::size_t i = 0; i < block; ++i)
      Kept::put(job.output, from + i, finished<kOperation>(sums[i], job.divisor));
  }
}

template <class Kept, Operation kOperation>
[[gnu::always_inline]] inline void reduce_job(const Job& job) {
  if (job.inputs.size() == 2)
    reduce_two<Kept, kOperation>(job);
  else
    reduce_many<Kept, kOperation>(job);
}

#if defined(__x86_64__)
template <class Kept, Operation kOperation>
[[gnu::target("avx2,f16c")]] void reduce_avx2(const Job& job) {
  reduce_job<Kept, kOperation>(job);
}
template <class Kept, Operation kOperation>
[[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx2,prefer-vector-width=512")]] void reduce_avx512(
    const Job& job) {
  reduce_job<Kept, kOperation>(job);
}
#endif

template <class Kept, Operation kOperation>
void reduce_with(const Job& job, Vectors vectors) {
#if defined(__x86_64__)
  if (vectors == Vectors::avx512) return reduce_avx512<Kept, kOperation>(job);
  if (vectors == Vectors::avx2) return reduce_avx2<Kept, kOperation>(job);
#else
  static_cast<void>(vectors);
#endif
  reduce_job<Kept, kOperation>(job);
}

/// Of integers; check() has refused it of others.
template <class Kept, Operation kOperation>
void reduce_bits(const Job& job, Vectors vectors) {
  if constexpr (std::is_integral_v<typename Kept::Number>) reduce_with<Kept, kOperation>(job, vectors);
}

template <class Kept>
void reduce_kept(const Job& job, Operation operation, Vectors vectors) {
  switch (operation) {
    case Operation::sum:
      return reduce_with<Kept, Operation::sum>(job, vectors);
    case Operation::prod:
      return reduce_with<Kept, Operation::prod>(job, vectors);
    case Operation::min:
      return reduce_with<Kept, Operation::min>(job, vectors);
    case Operation::max:
      return reduce_with<Kept, Operation::max>(job, vectors);
    case Operation::avg:
      return reduce_with<Kept, Operation::avg>(job, vectors);
    case Operation::bit_and:
      return reduce_bits<Kept, Operation::bit_and>(job, vectors);
    case Operation::bit_or:
      return reduce_bits<Kept, Operation::bit_or>(job, vectors);
    case Operation::bit_xor:
      return reduce_bits<Kept, Operation::bit_xor>(job, vectors);
  }
}

}  // namespace

Vectors best_vectors() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return Vectors::avx512;
  }
  if (__builtin_cpu_supports("avx2")) return Vectors::avx2;
#endif
  return Vectors::baseline;
}

void reduce(const Reduction& reduction, void* output, std::span<const void* const> inputs, std::size_t count,
            Vectors vectors) noexcept {
  if (count == 0 || inputs.empty()) return;
  const Job job{static_cast<std::byte*>(output), inputs, count, reduction.divisor};
  switch (reduction.type) {
    case DataType::float32:
      return reduce_kept<Plain<float>>(job, reduction.operation, vectors);
    case DataType::float64:
      return reduce_kept<Plain<double>>(job, reduction.operation, vectors);
    case DataType::float16:
      return reduce_kept<Float16>(job, reduction.operation, vectors);
    case DataType::bfloat16:
      return reduce_kept<BFloat16>(job, reduction.operation, vectors);
    case DataType::int8:
      return reduce_kept<Plain<std::int8_t>>(job, reduction.operation, vectors);
    case DataType::int16:
      return reduce_kept<Plain<std::int16_t>>(job, reduction.operation, vectors);
    case DataType::int32:
      return reduce_kept<Plain<std::int32_t>>(job, reduction.operation, vectors);
    case DataType::int64:
      return reduce_kept<Plain<std::int64_t>>(job, reduction.operation, vectors);
    case DataType::uint8:
      return reduce_kept<Plain<std::uint8_t>>(job, reduction.operation, vectors);
  }
}

void reduce(const Reduction& reduction, void* output, std::span<const void* const> inputs,
            std::size_t count) noexcept {
  static const Vectors best = best_vectors();
  reduce(reduction, output, inputs, count, best);
}

}  // namespace fleetrun::collective
