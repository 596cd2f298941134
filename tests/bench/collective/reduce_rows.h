// What every program of `scripts/bench collective` measures in the same way:
// all_reduce of float32 (sum), by sizes.
//
// A figure is the median over batches of calls that follow each other, after a barrier; rank 0 prints
// "row BYTES MICROSECONDS WRONG" for each size, WRONG being the elements
// of rank 0's last result that are not exact.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bench {

struct Ranks {
  int rank = 0, size = 1;
  std::function<void()> barrier;
  std::function<void(float* input, float* output, std::size_t count)> all_reduce;  // input may be output
};

inline float given(int rank, std::size_t i) {
  return static_cast<float>((i + static_cast<std::size_t>(rank) * 7) % 5);
}

inline std::size_t wrong(const Ranks& ranks, const float* output, std::size_t count) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int r = 0; r < ranks.size; ++r) sum += given(r, i);
    found += output[i] == sum ? 0 : 1;
  }
  return found;
}

struct Pages {
  explicit Pages(std::size_t bytes) : data(static_cast<float*>(std::aligned_alloc(4096, bytes)), &std::free) {
    std::memset(data.get(), 0, bytes);
  }
  std::unique_ptr<float, void (*)(void*)> data;
};

inline void measure(const Ranks& ranks, std::size_t bytes, bool in_place) {
  using Clock = std::chrono::steady_clock;
  const std::size_t count = bytes / sizeof(float);
  const int calls = bytes <= 65536 ? 200 : bytes <= 1 << 20 ? 20 : bytes <= 8 << 20 ? 4 : 1;
  const int batches = bytes <= 8 << 20 ? 31 : 15;
  Pages from(bytes), to(bytes);
  float *input = from.data.get(), *output = in_place ? input : to.data.get();
  std::vector<double> figures;
  for (int batch = -2; batch < batches; ++batch) {  // two to warm up
    ranks.barrier();
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) ranks.all_reduce(input, output, count);
    const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
    if (batch >= 0) figures.push_back(took.count() / calls);
  }
  for (std::size_t i = 0; i < count; ++i) input[i] = given(ranks.rank, i);
  ranks.all_reduce(input, output, count);
  std::sort(figures.begin(), figures.end());
  if (ranks.rank == 0) {
    std::printf("row %zu %.3f %zu\n", bytes, figures[figures.size() / 2], wrong(ranks, output, count));
    std::fflush(stdout);
  }
}

/// `argv`: in|out, then sizes.
inline int run(const Ranks& ranks, int argc, char** argv) {
  const bool in_place = argc > 0 && std::string(argv[0]) == "in";
  for (int i = 1; i < argc; ++i) measure(ranks, std::strtoull(argv[i], nullptr, 10), in_place);
  return 0;
}

}  // namespace bench
