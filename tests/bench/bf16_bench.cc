// Whether products in bfloat16 would be faster here than in float32: the instructions alone, on registers,
// and the matrix library's product of 1000x400 by 400x400 in both, weights in its own layout. One thread.
//
//   bf16_bench [ROUNDS]    a line of JSON with GFLOP/s for each round;
//                          0 where the processor has no such instruction

#include <omp.h>
#include <dnnl.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <unordered_map>
#include <vector>

#if defined(__x86_64__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace {

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

#if defined(__x86_64__)
constexpr std::size_t kChains = 12;  // more than latency times instructions a cycle
constexpr long kRepeats = 20'000'000;

[[gnu::target("avx512f,avx512bf16"), gnu::noinline]] void multiply_add_float32(float value) {
  __m512 sums[kChains];
#pragma GCC unroll 12
  for (std::size_t i = 0; i < kChains; ++i) {
    sums[i] = _mm512_setzero_ps();
    asm volatile("" : "+v"(sums[i]));  // not known to be the same as the others
  }
  __m512 x = _mm512_set1_ps(value);
  for (long k = 0; k < kRepeats; ++k) {
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kChains; ++i) sums[i] = _mm512_fmadd_ps(x, x, sums[i]);
    asm volatile("" : "+v"(x));  // a value that the compiler does not know in each turn
  }
#pragma GCC unroll 12
  for (std::size_t i = 0; i < kChains; ++i) asm volatile("" : "+v"(sums[i]));
}

[[gnu::target("avx512f,avx512bf16"), gnu::noinline]] void multiply_add_bfloat16(float value) {
  __m512 sums[kChains];
#pragma GCC unroll 12
  for (std::size_t i = 0; i < kChains; ++i) {
    sums[i] = _mm512_setzero_ps();
    asm volatile("" : "+v"(sums[i]));  // not known to be the same as the others
  }
  __m512bh x = _mm512_cvtne2ps_pbh(_mm512_set1_ps(value), _mm512_set1_ps(value));
  for (long k = 0; k < kRepeats; ++k) {
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kChains; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], x, x);
    asm volatile("" : "+v"(x));
  }
#pragma GCC unroll 12
  for (std::size_t i = 0; i < kChains; ++i) asm volatile("" : "+v"(sums[i]));
}

bool has_instruction() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16");
}

double float32_rate() {
  if (!has_instruction()) return 0;
  constexpr double kFlop = 2.0 * 16 * kChains * static_cast<double>(kRepeats);
  return kFlop / seconds_of([] { multiply_add_float32(0.5f); }) / 1e9;
}

double bfloat16_rate() {
  if (!has_instruction()) return 0;
  constexpr double kFlop = 2.0 * 32 * kChains * static_cast<double>(kRepeats);
  return kFlop / seconds_of([] { multiply_add_bfloat16(0.5f); }) / 1e9;
}
#else
double float32_rate() {
  return 0;
}
double bfloat16_rate() {
  return 0;
}
#endif

/// GFLOP/s of the library's product of these values; 0 where it has none.
double library_rate(dnnl::memory::data_type type) {
  using dnnl::memory;
  constexpr memory::dim kRows = 1000, kWidth = 400;
  constexpr int kTimes = 100;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::desc a({kRows, kWidth}, type, memory::format_tag::ab);
  const memory::desc b({kWidth, kWidth}, type, memory::format_tag::any);
  const memory::desc c({kRows, kWidth}, memory::data_type::f32, memory::format_tag::ab);
  try {
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), engine);
    memory x(a, engine), w(description.weights_desc(), engine), y(c, engine);
    const dnnl::matmul product(description);
    const std::unordered_map<int, memory> arguments{
        {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}};
    // 0x3f003f00: 0.5 in bfloat16, and about that in float32.
    for (const memory* each : {&x, &w}) {
      auto* words = static_cast<unsigned*>(each->get_data_handle());
      std::fill_n(words, each->get_desc().get_size() / sizeof(unsigned), 0x3f003f00u);
    }
    product.execute(stream, arguments);
    const double seconds = seconds_of([&] {
      for (int i = 0; i < kTimes; ++i) product.execute(stream, arguments);
      stream.wait();
    });
    return 2.0 * kRows * kWidth * kWidth * kTimes / seconds / 1e9;
  } catch (const dnnl::error&) {
    return 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  omp_set_num_threads(1);
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  for (int round = 0; round < rounds; ++round) {
    std::printf("{\"instruction_float32\": %.0f, \"instruction_bfloat16\": %.0f, ", float32_rate(),
                bfloat16_rate());
    std::printf("\"library_float32\": %.0f, \"library_bfloat16\": %.0f}\n",
                library_rate(dnnl::memory::data_type::f32), library_rate(dnnl::memory::data_type::bf16));
    std::fflush(stdout);
  }
}
