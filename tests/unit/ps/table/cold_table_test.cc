// A table whose rows hardly fit into memory and one that has all of it do the same: bit for bit, whatever is
// done to them in whatever order, and while cuts of them are read.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ps/disk/rocksdb_rows.h"
#include "ps/table/memory_budget.h"
#include "ps/table/sparse_cut.h"
#include "ps/table/sparse_table.h"
#include "tests/support/memory_cold_rows.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::tests::sparse_table;
using fleetrun::tests::TempDir;

namespace {

using Bits = std::vector<std::uint32_t>;
using Contents = std::map<std::uint64_t, Bits>;

Bits bits_of(const float* floats, std::size_t count) {
  Bits bits(count);
  std::copy_n(reinterpret_cast<const unsigned char*>(floats), 4 * count,
              reinterpret_cast<unsigned char*>(bits.data()));
  return bits;
}

// Reads what is left of a cut.
void read_rest(SparseCut& cut, std::size_t shard, std::size_t row_floats, Contents& into) {
  ColdBlock block;
  while (cut.read(shard, block)) {
    for (std::size_t i = 0; i < block.keys.size(); ++i) {
      const bool is_new =
          into.emplace(block.keys[i], bits_of(block.rows.data() + i * row_floats, row_floats)).second;
      REQUIRE_MESSAGE(is_new, "key ", block.keys[i], " is twice in a cut");
    }
  }
}

Contents contents_of(SparseTable& table) {
  Contents contents;
  const auto cut = table.begin_cut();
  for (std::size_t shard = 0; shard < SparseTable::kShards; ++shard) {
    read_rest(*cut, shard, table.row_floats(), contents);
  }
  return contents;
}

// The same table with all memory and with little of it.
class Twins {
 public:
  Twins(const TableConfig& config, std::uint64_t budget, std::unique_ptr<ColdRows> cold)
      : budget_(budget), width_(config.width), whole_(config), small_(config) {
    small_.attach(std::move(cold), budget_);
  }

  void step(std::mt19937_64& random) {
    const std::vector<std::uint64_t> keys = some_keys(random);
    switch (random() % 16) {
      case 0:
        return shrink();
      case 1:
        return erase(keys);
      case 2:
        return insert(keys.front(), random);
      case 3:
        return cut_and_settle(static_cast<SaveMode>(random() % 4), random);
      case 4:
      case 5:
      case 6:
      case 7:
        return pull(keys, random() % 4 != 0);
      default:
        return push(keys, random);
    }
  }

  void compare() {
    REQUIRE(whole_.rows() == small_.rows());
    REQUIRE(contents_of(whole_) == contents_of(small_));
  }

  const SparseTable& small() const { return small_; }
  const MemoryBudget& budget() const { return budget_; }

 private:
  static std::vector<std::uint64_t> some_keys(std::mt19937_64& random) {
    std::vector<std::uint64_t> keys(1 + random() % 100);
    for (std::uint64_t& key : keys) key = random() % (random() % 2 == 0 ? 30 : 600);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    std::shuffle(keys.begin(), keys.end(), random);
    return keys;
  }

  void pull(const std::vector<std::uint64_t>& keys, bool create) {
    budget_.make_room();
    std::vector<float> here(keys.size() * (width_ + 2));
    std::vector<float> there(here.size());
    whole_.pull(keys, here.data(), create);
    small_.pull(keys, there.data(), create);
    REQUIRE(bits_of(here.data(), here.size()) == bits_of(there.data(), there.size()));
  }

  void push(const std::vector<std::uint64_t>& keys, std::mt19937_64& random) {
    budget_.make_room();
    std::vector<float> gradients(keys.size() * width_);
    std::vector<float> shows(keys.size());
    std::vector<float> clicks(keys.size());
    for (float& gradient : gradients) gradient = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      shows[i] = static_cast<float>(1 + random() % 3);
      clicks[i] = static_cast<float>(random() % 2);
    }
    const PushStatistics statistics{shows, clicks, static_cast<std::uint16_t>(random() % 5)};
    whole_.push(keys, gradients.data(), statistics);
    small_.push(keys, gradients.data(), statistics);
  }

  void erase(const std::vector<std::uint64_t>& keys) { REQUIRE(whole_.erase(keys) == small_.erase(keys)); }

  void shrink() { REQUIRE(whole_.shrink() == small_.shrink(2)); }

  void insert(std::uint64_t key, std::mt19937_64& random) {
    std::vector<float> row(whole_.row_floats(), static_cast<float>(random() % 10));
    if (whole_.layout().statistics != 0) write_statistics(Statistics{1, 3, 0.5f, 2.0f, 1.0f}, row.data());
    whole_.insert(key, row);
    small_.insert(key, row);
  }

  // Pulls and pushes go on while the cuts are read; both hold what the tables were.
  void cut_and_settle(SaveMode mode, std::mt19937_64& random) {
    const auto here = whole_.begin_cut(mode);
    const auto there = small_.begin_cut(mode);
    REQUIRE(here->rows() == there->rows());
    Contents a;
    Contents b;
    const bool interrupts = random() % 2 == 0;
    for (std::size_t shard = 0; shard < SparseTable::kShards; ++shard) {
      if (interrupts && shard % 16 == 8) {
        random() % 2 == 0 ? push(some_keys(random), random) : pull(some_keys(random), true);
        if (random() % 4 == 0) erase(some_keys(random));
        if (random() % 4 == 0) shrink();
      }
      read_rest(*here, shard, whole_.row_floats(), a);
      read_rest(*there, shard, whole_.row_floats(), b);
    }
    REQUIRE(a == b);
    if (interrupts) push(some_keys(random), random);
    here->settle();
    there->settle();
  }

  MemoryBudget budget_;
  std::uint64_t width_;
  SparseTable whole_;
  SparseTable small_;
};

TableConfig plain_adam() {
  TableConfig config = sparse_table(0, "plain", 3, UpdateRule::Kind::adam);
  config.initializer = {Initializer::Kind::uniform, -1.0, 1.0, 4};
  return config;
}

TableConfig counted_ctr() {
  TableConfig config = sparse_table(0, "ctr", 4, UpdateRule::Kind::shared_adagrad);
  config.initializer = {Initializer::Kind::uniform, -1.0, 1.0, 4};
  config.rule.initial_accumulator = 3.0f;
  config.accessor.kind = Accessor::Kind::ctr;
  config.accessor.embedx_threshold = 3.0f;
  config.accessor.show_click_decay_rate = 0.75f;
  config.accessor.delete_threshold = 0.5f;
  config.accessor.delta_threshold = 0.25f;
  config.accessor.base_threshold = 0.5f;
  config.accessor.delete_after_unseen_days = 4.0f;
  config.admission = {Admission::Kind::count, 2, 1.0, 1};
  return config;
}

void run(const TableConfig& config, bool on_disk, std::uint64_t budget, unsigned seed, int steps) {
  CAPTURE(config.name);
  CAPTURE(on_disk);
  CAPTURE(budget);
  CAPTURE(seed);
  const TempDir directory;
  const std::size_t floats = SparseTable(config).row_floats();
  Twins twins(config, budget,
              on_disk ? open_rocksdb_store({directory.path().string(), "test", std::uint64_t{4} << 20})
                            ->open(config, floats)
                      : std::make_unique<MemoryColdRows>(floats));
  std::mt19937_64 random(seed);
  for (int step = 0; step < steps; ++step) {
    twins.step(random);
    if (step % 16 == 0) twins.compare();
  }
  twins.compare();
  CHECK(twins.small().metrics().from_disk > 20);
}

}  // namespace

TEST_CASE("a table with memory for a few rows does what one with all of it does") {
  for (const unsigned seed : {1u, 2u, 3u, 4u}) {
    run(plain_adam(), false, 1000, seed, 300);
    run(counted_ctr(), false, 1000, seed, 300);
    run(counted_ctr(), false, 1, seed, 200);
    run(counted_ctr(), false, 8000, seed, 300);
  }
}

TEST_CASE("and with rows on disk") {
  run(plain_adam(), true, 1000, 5, 300);
  run(counted_ctr(), true, 2000, 6, 300);
}

TEST_CASE(
    "what cannot leave memory stays in it, and what cannot come back is told before anything has changed") {
  MemoryBudget budget(600);
  const TableConfig config = plain_adam();
  SparseTable table(config);
  auto owned = std::make_unique<MemoryColdRows>(table.row_floats());
  MemoryColdRows& cold = *owned;
  table.attach(std::move(owned), budget);
  std::vector<std::uint64_t> keys(100);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  std::vector<float> ones(keys.size() * config.width, 1.0f);
  table.push(keys, ones.data());
  const Contents before = contents_of(table);
  cold.fail(true);
  CHECK_THROWS_AS(budget.make_room(), fleetrun::Error);
  CHECK(contents_of(table) == before);
  cold.fail(false);
  budget.make_room();
  CHECK(budget.used() <= 600);
  CHECK(table.metrics().cold_rows > 80);
  cold.fail(true);
  CHECK_THROWS_AS(table.push(keys, ones.data()), fleetrun::Error);
  cold.fail(false);
  CHECK(table.rows() == 100);
}

TEST_CASE("a checkpoint moves rows out that no push has seen for days, and they come back by a pull") {
  MemoryBudget budget(1 << 20);
  TableConfig config = counted_ctr();
  config.admission = {};
  config.accessor.ssd_unseenday_threshold = 1.0f;
  SparseTable table(config);
  table.attach(std::make_unique<MemoryColdRows>(table.row_floats()), budget);
  const std::vector<std::uint64_t> keys{1, 2, 3};
  const std::vector<float> gradients(3 * config.width, 0.5f);
  table.push(keys, gradients.data());
  const auto age = [&table] {
    const auto cut = table.begin_cut(SaveMode::checkpoint);
    Contents ignored;
    for (std::size_t shard = 0; shard < SparseTable::kShards; ++shard)
      read_rest(*cut, shard, table.row_floats(), ignored);
    cut->settle();
  };
  age();
  CHECK(table.metrics().cold_rows == 0);
  table.push(std::span(keys).first(1), gradients.data());
  age();
  CHECK(table.metrics().cold_rows == 2);
  std::vector<float> pulled(2 * (config.width + 2));
  table.pull(std::span(keys).last(2), pulled.data());
  CHECK(table.metrics().cold_rows == 0);
  CHECK(pulled[0] == 1.0f);
}
