// What a table costs whose rows take ten times the memory that they may have: Zipf keys are pulled and pushed
// in batches of 26,000, as a trainer does, and beside it how fast RocksDB alone finds rows that are on disk.
// One line per measurement: the median of its repetitions, and the fastest and slowest in brackets.
//
//   ps_disk_bench [DIRECTORY] [MILLIONS OF ROWS]     default: /var/tmp 10
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "ps/disk/rocksdb_rows.h"
#include "ps/table/memory_budget.h"
#include "ps/table/sparse_table.h"
#include "runtime/base/mix.h"

namespace {

using namespace fleetrun::ps;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kWidth = 10;
constexpr std::size_t kBatch = 26000;
constexpr std::size_t kBatches = 200;
constexpr std::size_t kShards = SparseTable::kShards;

double seconds_of(const auto& action) {
  const auto before = Clock::now();
  action();
  return std::chrono::duration<double>(Clock::now() - before).count();
}

void print(const char* what, std::vector<double> seconds, double items) {
  std::sort(seconds.begin(), seconds.end());
  std::printf("%-58s %8.3f M/s  (%.3f .. %.3f)\n", what, items / seconds[seconds.size() / 2] / 1e6,
              items / seconds.back() / 1e6, items / seconds.front() / 1e6);
  std::fflush(stdout);
}

// The key of rank r with a probability of 1/r^s.
class Zipf {
 public:
  Zipf(std::uint64_t ranks, double s) : sums_(ranks) {
    double sum = 0.0;
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      sums_[rank] = sum += std::pow(static_cast<double>(rank + 1), -s);
    }
  }
  std::uint64_t operator()(std::mt19937_64& random) const {
    const double at = std::uniform_real_distribution<double>(0.0, sums_.back())(random);
    return mix(static_cast<std::uint64_t>(std::lower_bound(sums_.begin(), sums_.end(), at) - sums_.begin()));
  }

 private:
  std::vector<double> sums_;
};

TableConfig embedding() {
  TableConfig config;
  config.name = "emb";
  config.kind = TableConfig::Kind::sparse;
  config.width = kWidth;
  config.rule.kind = UpdateRule::Kind::adagrad;
  config.rule.initial_accumulator = 0.1f;
  config.initializer = {Initializer::Kind::uniform, -0.1, 0.1, 1};
  return config;
}

// RocksDB alone: all rows are there, and each batch of random ones is taken out and put back.
void bench_rocksdb(ColdStore& store, std::uint64_t rows) {
  const TableConfig config = embedding();
  const std::size_t floats = SparseTable(config).row_floats();
  const auto cold = store.open(config, floats);
  std::vector<std::uint64_t> keys(rows / kShards);
  std::vector<float> values(keys.size() * floats, 0.5f);
  std::vector<double> puts;
  for (std::size_t shard = 0; shard < kShards; ++shard) {
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i * 0x9e3779b97f4a7c15ull;
    puts.push_back(seconds_of([&] { cold->put(shard, keys, values); }));
  }
  print("rows put aside, one batch for each shard", puts, static_cast<double>(keys.size()));
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> some(kBatch / kShards);
  std::vector<double> takes;
  for (int batch = 0; batch < 40; ++batch) {
    double seconds = 0.0;
    for (std::size_t shard = 0; shard < kShards; ++shard) {
      for (std::uint64_t& key : some) key = keys[random() % keys.size()];
      std::sort(some.begin(), some.end());
      const auto end = std::unique(some.begin(), some.end());
      const std::span<const std::uint64_t> distinct(some.begin(), end);
      seconds +=
          seconds_of([&] { cold->take(shard, distinct, std::span(values).first(distinct.size() * floats)); });
      cold->put(shard, distinct, std::span(values).first(distinct.size() * floats));
    }
    takes.push_back(seconds);
  }
  print("rows taken back by MultiGet, 26,000 random ones", takes, kBatch);
  std::printf("%-58s %8.1f bytes\n", "on disk, a row",
              static_cast<double>(cold->bytes_on_disk()) / static_cast<double>(rows));
}

void bench_table(ColdStore* store, std::uint64_t rows, double s, std::uint64_t part) {
  SparseTable table(embedding());
  const std::uint64_t row_bytes = 8 + table.row_floats() * sizeof(float) + 9;
  MemoryBudget budget(part == 0 ? ~std::uint64_t{0} : rows * row_bytes / part);
  if (store != nullptr) table.attach(store->open(table.config(), table.row_floats()), budget);
  const std::string of = "Zipf " + std::to_string(s).substr(0, 4) +
                         (part == 0 ? ", all in memory" : ", 1/" + std::to_string(part) + " in memory");
  std::vector<float> values(kBatch * kWidth);
  std::vector<std::uint64_t> keys(kBatch);
  for (std::uint64_t rank = 0; rank < rows;
       rank += kBatch) {  // every row is made once, the most frequent ones last
    for (std::size_t i = 0; i < kBatch; ++i) keys[i] = mix(rows - 1 - std::min(rank + i, rows - 1));
    budget.make_room();
    table.pull(keys, values.data());
  }
  const Zipf zipf(rows, s);
  std::mt19937_64 random(1);
  std::vector<double> seconds;
  double pulled = 0.0;
  const auto before = table.metrics();
  for (std::size_t batch = 0; batch < kBatches; ++batch) {
    keys.resize(kBatch);
    for (std::uint64_t& key : keys) key = zipf(random);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    pulled += static_cast<double>(keys.size());
    seconds.push_back(seconds_of([&] {
                        budget.make_room();
                        table.pull(keys, values.data());
                        table.push(keys, values.data());
                      }) /
                      static_cast<double>(keys.size()));
  }
  print(("rows pulled and pushed, " + of).c_str(), seconds, 1.0);
  const auto after = table.metrics();
  std::printf("%-58s %8.1f %%, %zu distinct keys a batch, %zu of %zu rows in memory\n", "  found in memory",
              100.0 * (1.0 - static_cast<double>(after.from_disk - before.from_disk) / pulled),
              static_cast<std::size_t>(pulled / kBatches),
              static_cast<std::size_t>(after.rows - after.cold_rows), static_cast<std::size_t>(after.rows));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string directory = argc > 1 ? argv[1] : "/var/tmp";
  const std::uint64_t rows = static_cast<std::uint64_t>(argc > 2 ? std::atoi(argv[2]) : 10) * 1000000;
  const auto store = open_rocksdb_store({directory, "ps_disk_bench", std::uint64_t{64} << 20});
  bench_rocksdb(*store, rows);
  for (const double s : {1.05, 0.8}) {
    bench_table(nullptr, rows, s, 0);
    bench_table(store.get(), rows, s, 10);
  }
}
