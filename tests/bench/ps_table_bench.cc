// What a row of a sparse table costs: rows pulled and pushed per second of a core, for keys that are uniform
// and for keys that follow Zipf's law, in batches of 26,000 distinct ones at most (26 slots x 1,000
// examples), beside the rate at which this machine reads random cache lines at that moment. Bytes per row are
// counted by the table and by the kernel.
//
//   ps_table_bench [ROWS] [THREADS]     10,000,000 and 1
//
// Prints one line per measurement: the median of its rounds, and the least and most in brackets.
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ps/base/key_groups.h"
#include "ps/table/sparse_table.h"

namespace {

using namespace fleetrun::ps;

constexpr std::size_t kWidth = 10;
constexpr std::size_t kBatch = 26000;
constexpr std::size_t kBatches = 20;
constexpr std::size_t kRounds = 9;

// Seconds that this thread had a core: other programs on the machine take caches and bandwidth, but no time.
double now() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of(const std::function<void()>& action) {
  const double before = now();
  action();
  return now() - before;
}

void print(const std::string& what, std::vector<double> values, const char* unit) {
  std::sort(values.begin(), values.end());
  std::printf("%-52s %8.2f %s  (%.2f .. %.2f)\n", what.c_str(), values[values.size() / 2], unit,
              values.front(), values.back());
}

std::uint64_t resident_bytes() {
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Random cache lines of a gigabyte on huge pages, as many at once as the processor keeps under way.
class RandomReads {
 public:
  RandomReads() : memory_(static_cast<std::uint64_t*>(std::aligned_alloc(kHugePage, kBytes))) {
    static_cast<void>(::madvise(memory_.get(), kBytes, MADV_HUGEPAGE));
    for (std::size_t i = 0; i < kBytes / 8; i += 8) memory_.get()[i] = i;
  }
  double lines_per_second() {
    std::uint64_t sum = 0;
    std::uint64_t state = 88172645463325252ull + sum_;
    const double seconds = seconds_of([&] {
      for (std::size_t i = 0; i < kReads; ++i) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        sum += memory_.get()[(state >> 33) % (kBytes / 64) * 8];
      }
    });
    sum_ += sum & 1;
    return static_cast<double>(kReads) / seconds;
  }

 private:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  static constexpr std::size_t kBytes = std::size_t{1} << 30;
  static constexpr std::size_t kReads = 8000000;
  struct Free {
    void operator()(std::uint64_t* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<std::uint64_t, Free> memory_;
  std::uint64_t sum_ = 0;
};

using Batches = std::vector<std::vector<std::uint64_t>>;

Batches make_batches(std::uint64_t rows, bool zipf, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  const double log_rows = std::log(static_cast<double>(rows));
  Batches batches(kBatches);
  for (auto& batch : batches) {
    std::vector<std::uint64_t> drawn(kBatch);
    for (std::uint64_t& key : drawn) {
      // Zipf's law with exponent 1: the logarithm of the rank is uniform.
      key = zipf ? static_cast<std::uint64_t>(std::exp(unit(random) * log_rows)) % rows : random() % rows;
    }
    batch = group_keys(drawn, 1).keys;
  }
  return batches;
}

TableConfig rows_table(UpdateRule::Kind rule) {
  TableConfig config;
  config.name = "emb";
  config.kind = TableConfig::Kind::sparse;
  config.width = kWidth;
  config.rule.kind = rule;
  config.rule.initial_accumulator = 0.1f;
  config.initializer = {Initializer::Kind::uniform, -0.1, 0.1, 1};
  return config;
}

void fill(SparseTable& table, std::uint64_t rows) {
  const std::uint64_t before = resident_bytes();
  double max = 0.0;
  std::vector<std::uint64_t> keys(kBatch);
  std::vector<float> values(kBatch * kWidth);
  const double seconds = seconds_of([&] {
    for (std::uint64_t from = 0; from < rows; from += kBatch) {
      const std::size_t count = std::min<std::uint64_t>(kBatch, rows - from);
      for (std::size_t i = 0; i < count; ++i) keys[i] = from + i;
      table.pull(std::span(keys).first(count), values.data());
      if (from < rows / 10) continue;
      const SparseMetrics metrics = table.metrics();
      max = std::max(max, static_cast<double>(metrics.bytes) / static_cast<double>(metrics.rows));
    }
  });
  const auto per_row = [rows](std::uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(rows);
  };
  const double fields = static_cast<double>(table.row_floats() * sizeof(float));
  const double counted = per_row(table.metrics().bytes);
  std::printf("%-52s %8.2f M/s\n", "first pull of every row", static_cast<double>(rows) / seconds / 1e6);
  std::printf("%-52s %8.2f    (%.1f of %.0f, %.1f at most while it grew: %.2f; resident %.1f)\n",
              "bytes per row / bytes of its fields (without the key)", counted / fields, counted, fields, max,
              max / fields, per_row(resident_bytes() - before));
}

// One round over all batches, for a second that a core spends on it.
double rows_per_second(const Batches& batches, unsigned threads,
                       const std::function<void(const std::vector<std::uint64_t>&, float*)>& action) {
  std::vector<std::vector<float>> rows(threads, std::vector<float>(kBatch * kWidth, 0.01f));
  std::size_t total = 0;
  for (const auto& batch : batches) total += batch.size() * threads;
  std::vector<double> seconds(threads);
  {
    std::vector<std::jthread> running;
    for (unsigned t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        seconds[t] = seconds_of([&] {
          for (std::size_t i = 0; i < batches.size(); ++i)
            action(batches[(i + 7 * t) % batches.size()], rows[t].data());
        });
      });
    }
  }
  return static_cast<double>(total) / std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

void bench(UpdateRule::Kind rule, std::uint64_t rows, unsigned threads, RandomReads& reads) {
  std::printf("%s, dim %zu, %llu rows, %u thread%s\n", std::string(to_string(rule)).c_str(), kWidth,
              static_cast<unsigned long long>(rows), threads, threads == 1 ? "" : "s");
  SparseTable table(rows_table(rule));
  fill(table, rows);
  for (const bool zipf : {false, true}) {
    std::vector<double> lines, pulls, pushes, pull_ratios, push_ratios;
    for (std::size_t round = 0; round < kRounds; ++round) {
      const Batches batches = make_batches(rows, zipf, round + 1);
      lines.push_back(reads.lines_per_second() / 1e6);
      pulls.push_back(
          rows_per_second(batches, threads, [&](const auto& keys, float* to) { table.pull(keys, to); }) /
          1e6);
      const Batches others = make_batches(rows, zipf, round + 1000);
      pushes.push_back(
          rows_per_second(others, threads, [&](const auto& keys, float* from) { table.push(keys, from); }) /
          1e6);
      pull_ratios.push_back(pulls.back() / lines.back());
      push_ratios.push_back(pushes.back() / lines.back());
    }
    const std::string of = zipf ? ", zipf keys" : ", uniform keys";
    print("random lines read, one thread", lines, "M/s");
    print("pull" + of, pulls, "M/s");
    print("push" + of, pushes, "M/s");
    print("pull / random lines" + of, pull_ratios, "   ");
    print("push / random lines" + of, push_ratios, "   ");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t rows = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000000;
  const auto threads = static_cast<unsigned>(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1);
  if (rows == 0 || threads == 0 || threads > 64) {
    std::fprintf(stderr, "usage: ps_table_bench [ROWS] [THREADS]\n");
    return 2;
  }
  RandomReads reads;
  bench(UpdateRule::Kind::adagrad, rows, threads, reads);
}
