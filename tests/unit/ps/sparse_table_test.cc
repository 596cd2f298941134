#include "ps/sparse_table.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <random>
#include <thread>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::sparse_table;

TEST_CASE("a table holds what a map would hold") {
  for (const std::uint64_t width : {1, 10, 20000}) {
    SparseTable table(sparse_table(0, "t", width));
    std::map<std::uint64_t, float> expected;
    std::mt19937_64 random(width);
    const std::size_t batch = width > 100 ? 20 : 3000;
    for (int step = 0; step < 5; ++step) {
      std::map<std::uint64_t, float> distinct;
      for (std::size_t i = 0; i < batch; ++i)
        distinct[random() % (4 * batch) * 0x100000001ull] = static_cast<float>(i);
      std::vector<std::uint64_t> keys;
      std::vector<float> gradients;
      for (const auto& [key, value] : distinct) {
        keys.push_back(key);
        gradients.insert(gradients.end(), width, value);
        expected[key] += value;
      }
      table.push(keys, gradients.data());
    }
    CHECK(table.rows() == expected.size());
    std::vector<std::uint64_t> keys;
    for (const auto& [key, value] : expected) keys.push_back(key);
    std::vector<float> rows(keys.size() * width);
    table.pull(keys, rows.data());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      REQUIRE(rows[i * width] == expected.at(keys[i]));
      REQUIRE(rows[(i + 1) * width - 1] == expected.at(keys[i]));
    }
    CHECK(table.rows() == expected.size());
  }
}

TEST_CASE("the keys 0 and 2^64 - 1 are keys like others") {
  SparseTable table(sparse_table(0, "t", 1));
  const std::vector<std::uint64_t> keys{0, ~0ull};
  const std::vector<float> gradients{1.0f, 2.0f};
  table.push(keys, gradients.data());
  std::vector<float> rows(2);
  table.pull(keys, rows.data());
  CHECK(rows == gradients);
}

TEST_CASE("each row counts its own adam steps") {
  SparseTable table(sparse_table(0, "t", 1, UpdateRule::Kind::adam));
  const std::vector<std::uint64_t> both{1, 2};
  const std::vector<float> gradients{4.0f, 4.0f};
  table.push(std::span(both).first(1), gradients.data());
  table.push(both, gradients.data());
  std::vector<float> rows(2);
  table.pull(both, rows.data());
  // Equal gradients: every step is the learning rate, 0.5, if and only if its own step count corrects it.
  CHECK(rows[0] == doctest::Approx(-1.0));
  CHECK(rows[1] == doctest::Approx(-0.5));
}

TEST_CASE("a row is born by a push as by a pull") {
  TableConfig config = sparse_table(0, "t", 2);
  config.initializer = {Initializer::Kind::uniform, 1.0, 2.0, 3};
  SparseTable pulled(config);
  SparseTable pushed(config);
  const std::vector<std::uint64_t> keys{5};
  const std::vector<float> zeros(2, 0.0f);
  std::vector<float> a(2);
  std::vector<float> b(2);
  pulled.pull(keys, a.data());
  pushed.push(keys, zeros.data());
  pushed.pull(keys, b.data());
  CHECK(a == b);
  CHECK(a[0] >= 1.0f);
}

TEST_CASE("visit shows all rows in key order within a shard, and insert takes them back") {
  const TableConfig config = sparse_table(0, "t", 3, UpdateRule::Kind::adam);
  SparseTable table(config);
  std::vector<std::uint64_t> keys(2000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i * 77;
  const std::vector<float> gradients(keys.size() * 3, 0.25f);
  table.push(keys, gradients.data());
  SparseTable copy(config);
  for (std::size_t shard = 0; shard < SparseTable::kShards; ++shard) {
    std::uint64_t before = 0;
    table.visit(shard, [&](std::uint64_t key, std::span<const float> row) {
      CHECK(key >= before);
      before = key;
      REQUIRE(row.size() == copy.row_floats());
      copy.insert(key, row);
    });
  }
  CHECK(copy.rows() == keys.size());
  table.push(keys, gradients.data());
  copy.push(keys, gradients.data());
  std::vector<float> a(gradients.size());
  std::vector<float> b(gradients.size());
  table.pull(keys, a.data());
  copy.pull(keys, b.data());
  CHECK(a == b);
}

TEST_CASE("threads that push and make rows at once lose nothing") {
  SparseTable table(sparse_table(0, "t", 4));
  std::vector<std::uint64_t> keys(5000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  const std::vector<float> ones(keys.size() * 4, 1.0f);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) table.push(keys, ones.data());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<float> rows(ones.size());
  table.pull(keys, rows.data());
  CHECK(rows == std::vector<float>(rows.size(), 40.0f));
  CHECK(table.rows() == keys.size());
}

TEST_CASE("add and assign pass the rule by and leave its state alone") {
  SparseTable table(sparse_table(0, "t", 2, UpdateRule::Kind::adagrad));
  const std::vector<std::uint64_t> keys{7, 8};
  const std::vector<float> ones{1.0f, 1.0f, 1.0f, 1.0f}, values{10.0f, 20.0f, 30.0f, 40.0f};
  table.push(keys, ones.data());
  table.assign(keys, values.data());
  table.add(keys, ones.data());
  std::vector<float> rows(4);
  table.pull(keys, rows.data());
  CHECK(rows == std::vector<float>{11.0f, 21.0f, 31.0f, 41.0f});
  table.push(keys, ones.data());
  table.pull(keys, rows.data());
  // The second gradient of 1: learning rate 0.5 over sqrt(2).
  CHECK(rows[0] == doctest::Approx(11.0 - 0.5 / std::sqrt(2.0)));
}

TEST_CASE("a gradient is divided by its shows, in a ctr table by its show_scale") {
  for (const auto kind : {Accessor::Kind::sparse, Accessor::Kind::ctr}) {
    for (const bool scales : {true, false}) {
      TableConfig config = sparse_table(0, "t", 1);
      config.rule = {
          .kind = UpdateRule::Kind::shared_adagrad, .learning_rate = 1.0f, .initial_accumulator = 3.0f};
      config.accessor = {.kind = kind, .show_scale = scales};
      SparseTable table(config);
      const std::uint64_t key = 5;
      const float gradient = 8.0f, shows = 4.0f, clicks = 0.0f;
      const auto last_column = [&] {
        std::vector<float> row(pulled_width(config));
        table.pull({&key, 1}, row.data());
        return row.back();
      };
      const float before = last_column();
      table.push({&key, 1}, &gradient, {.shows = {&shows, 1}, .clicks = {&clicks, 1}});
      const bool divides = kind == Accessor::Kind::sparse || scales;
      CHECK(last_column() == doctest::Approx(before - (divides ? 2.0f : 8.0f)));
    }
  }
}
