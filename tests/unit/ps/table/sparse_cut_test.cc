#include "ps/table/sparse_cut.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::sparse_table;

namespace {

using Contents = std::map<std::uint64_t, std::vector<float>>;

Contents contents_of(const SparseTable& table) {
  Contents out;
  for (std::size_t shard = 0; shard < SparseTable::kShards; ++shard) {
    table.visit(shard, [&out](std::uint64_t key, std::span<const float> row) {
      out[key] = {row.begin(), row.end()};
    });
  }
  return out;
}

// Calls between() before each block.
Contents read_all(
    SparseCut& cut, std::size_t floats, const std::function<void()>& between = [] {}) {
  Contents out;
  ColdBlock block;
  for (std::size_t shard = 0; shard < SparseTable::kShards; ++shard) {
    for (between(); cut.read(shard, block); between()) {
      REQUIRE(block.rows.size() == block.keys.size() * floats);
      for (std::size_t i = 0; i < block.keys.size(); ++i) {
        const float* row = block.rows.data() + i * floats;
        REQUIRE(out.emplace(block.keys[i], std::vector<float>(row, row + floats)).second);
      }
    }
  }
  return out;
}

void push_some(SparseTable& table, std::mt19937_64& random, std::size_t count, std::uint64_t keys) {
  std::vector<std::uint64_t> batch(count);
  for (std::uint64_t& key : batch) key = random() % keys;
  const std::vector<float> gradients(count * table.config().width, 1.0f);
  table.push(batch, gradients.data());
}

TableConfig with_statistics() {
  TableConfig config = sparse_table(0, "t", 3, UpdateRule::Kind::adagrad);
  config.accessor.kind = Accessor::Kind::sparse;
  config.accessor.base_threshold = 0.15f;
  config.accessor.delta_threshold = 0.15f;
  config.accessor.delete_threshold = 0.15f;
  return config;
}

}  // namespace

TEST_CASE(
    "a cut shows the rows of its moment, whatever is pushed, erased, put in or expires while it is read") {
  SparseTable table(with_statistics());
  std::mt19937_64 random(1);
  push_some(table, random, 200000, 150000);
  const Contents before = contents_of(table);
  const auto cut = table.begin_cut();
  CHECK(cut->rows() == before.size());
  int calls = 0;
  const Contents read = read_all(*cut, table.row_floats(), [&] {
    push_some(table, random, 1000, 200000);
    std::vector<std::uint64_t> gone(100);
    for (std::uint64_t& key : gone) key = random() % 150000;
    table.erase(gone);
    table.insert(random() % 200000, std::vector<float>(table.row_floats(), 9.0f));
    if (++calls == 20) table.shrink(2);
  });
  CHECK(read == before);
  CHECK(contents_of(table) != before);
}

TEST_CASE("cuts of two moments are read side by side") {
  SparseTable table(sparse_table(0, "t", 2));
  std::mt19937_64 random(2);
  push_some(table, random, 5000, 4000);
  const Contents first = contents_of(table);
  const auto one = table.begin_cut();
  push_some(table, random, 5000, 5000);
  const Contents second = contents_of(table);
  const auto two = table.begin_cut();
  push_some(table, random, 5000, 6000);
  CHECK(read_all(*two, table.row_floats()) == second);
  push_some(table, random, 5000, 6000);
  CHECK(read_all(*one, table.row_floats()) == first);
}

TEST_CASE("a cut is read by one thread while others push") {
  SparseTable table(sparse_table(0, "t", 2));
  std::mt19937_64 random(3);
  push_some(table, random, 50000, 40000);
  const Contents before = contents_of(table);
  const auto cut = table.begin_cut();
  std::atomic<bool> is_read{false};
  std::vector<std::thread> pushing;
  for (std::uint64_t t = 0; t < 2; ++t) {
    pushing.emplace_back([&table, &is_read, t] {
      std::mt19937_64 own(t);
      do push_some(table, own, 2000, 50000);
      while (!is_read);
    });
  }
  const Contents read = read_all(*cut, table.row_floats());
  is_read = true;
  for (std::thread& thread : pushing) thread.join();
  CHECK(read == before);
}

TEST_CASE("a delta holds what was pushed since the last one, and pushes during a save belong to the next") {
  SparseTable table(with_statistics());
  const std::vector<float> zeros(30, 0.0f);
  const std::vector<std::uint64_t> keys{1, 2, 3};
  table.push(keys, zeros.data());
  table.push(keys, zeros.data());
  const auto keys_of = [&](SparseCut& cut) {
    std::vector<std::uint64_t> out;
    for (const auto& [key, row] : read_all(cut, table.row_floats())) out.push_back(key);
    return out;
  };
  {
    const auto cut = table.begin_cut(SaveMode::delta);
    const std::vector<std::uint64_t> again{3};
    table.push(again, zeros.data());
    table.push(again, zeros.data());
    CHECK(keys_of(*cut) == keys);
    cut->settle();
  }
  CHECK(keys_of(*table.begin_cut(SaveMode::delta)) == std::vector<std::uint64_t>{3});
  // Nobody settled that one.
  CHECK(keys_of(*table.begin_cut(SaveMode::delta)) == std::vector<std::uint64_t>{3});
  CHECK(keys_of(*table.begin_cut(SaveMode::base)) == keys);
}

TEST_CASE("a checkpoint makes rows a day older, but for those that were pushed meanwhile") {
  SparseTable table(with_statistics());
  const std::vector<float> zeros(30, 0.0f);
  const std::vector<std::uint64_t> keys{1, 2, 3};
  table.push(keys, zeros.data());
  for (int day = 1; day <= 2; ++day) {
    const auto cut = table.begin_cut(SaveMode::checkpoint);
    const std::vector<std::uint64_t> again{2};
    table.push(again, zeros.data());
    CHECK(read_all(*cut, table.row_floats()).size() == 3);
    cut->settle();
    for (const auto& [key, row] : contents_of(table)) {
      CHECK(read_statistics(row.data()).unseen_days() == (key == 2 ? 0 : day));
    }
  }
}
