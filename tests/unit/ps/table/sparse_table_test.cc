#include "ps/table/sparse_table.h"

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

TEST_CASE("add passes the rule by and leaves its state alone, assign makes it that of a new row") {
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
  // The first gradient of 1: learning rate 0.5 over sqrt(1).
  CHECK(rows[0] == doctest::Approx(11.0 - 0.5));
  table.add(keys, ones.data());
  table.push(keys, ones.data());
  table.pull(keys, rows.data());
  CHECK(rows[0] == doctest::Approx(11.0 - 0.5 + 1.0 - 0.5 / std::sqrt(2.0)));
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

namespace {

TableConfig ctr_table(std::uint64_t width, float threshold) {
  TableConfig config = sparse_table(0, "t", width, UpdateRule::Kind::sgd);
  config.rule.learning_rate = 0.1f;
  config.initializer = {Initializer::Kind::uniform, 1.0, 2.0, 3};
  config.accessor.kind = Accessor::Kind::ctr;
  config.accessor.embedx_threshold = threshold;
  config.accessor.zero_init = true;
  return config;
}

std::vector<float> pulled(SparseTable& table, const std::vector<std::uint64_t>& keys, bool create = true) {
  std::vector<float> rows(keys.size() * pulled_width(table.config()), -7.0f);
  table.pull(keys, rows.data(), create);
  return rows;
}

std::vector<float> row_of(const SparseTable& table, std::uint64_t wanted) {
  std::vector<float> out;
  for (std::size_t shard = 0; shard < SparseTable::kShards; ++shard) {
    table.visit(shard, [&](std::uint64_t key, std::span<const float> row) {
      if (key == wanted) out.assign(row.begin(), row.end());
    });
  }
  return out;
}

}  // namespace

TEST_CASE("a pull that makes no rows gives what a new row would have") {
  TableConfig config = sparse_table(0, "t", 3);
  config.initializer = {Initializer::Kind::uniform, 1.0, 2.0, 3};
  SparseTable table(config);
  const auto looked = pulled(table, {5, 6, 5}, false);
  CHECK(table.rows() == 0);
  CHECK(pulled(table, {5, 6, 5}) == looked);
  CHECK(table.rows() == 2);
}

TEST_CASE("a ctr row is pulled with its shows and clicks, and gets its columns by score") {
  SparseTable table(ctr_table(3, 2.0f));
  const std::vector<std::uint64_t> keys{4};
  CHECK(pulled(table, keys) == std::vector<float>{0, 0, 0, 0, 0});
  const std::vector<float> gradients{1.0f, 1.0f, 1.0f};
  const std::vector<float> shows{2.0f};
  const std::vector<float> clicks{1.0f};
  table.push(keys, gradients.data(), {shows, clicks, 9});
  // Score 1.1: the first column only.
  CHECK(pulled(table, keys) == std::vector<float>{2, 1, -0.1f, 0, 0});
  table.push(keys, gradients.data(), {shows, clicks, 9});
  // Score 2.2: the columns are made, and this push's gradients for them are dropped.
  const auto made = pulled(table, keys);
  CHECK(made[3] >= 1.0f);
  CHECK(made[4] >= 1.0f);
  table.push(keys, gradients.data(), {shows, clicks, 9});
  const auto moved = pulled(table, keys);
  CHECK(moved[0] == 6.0f);
  CHECK(moved[1] == 3.0f);
  CHECK(moved[2] == doctest::Approx(-0.3));
  CHECK(moved[3] == doctest::Approx(made[3] - 0.1));
  const Statistics statistics = read_statistics(row_of(table, 4).data());
  CHECK(statistics.slot == 9);
  CHECK(statistics.is_extended());
  CHECK(statistics.delta_score == doctest::Approx(3.3));
}

TEST_CASE("a ctr row that is assigned has all its columns, and its shows and clicks as before") {
  SparseTable table(ctr_table(3, 2.0f));
  const std::vector<std::uint64_t> keys{4, 5};
  const std::vector<float> gradients{1.0f, 1.0f, 1.0f}, shows{2.0f}, clicks{1.0f};
  table.push({keys.data(), 1}, gradients.data(), {shows, clicks, 9});
  const std::vector<float> values{7, 8, 9, 10, 11, 12};
  table.assign(keys, values.data());
  CHECK(pulled(table, {4, 5}) == std::vector<float>{2, 1, 7, 8, 9, 0, 0, 10, 11, 12});
  table.push({keys.data(), 1}, gradients.data(), {shows, clicks, 9});
  CHECK(pulled(table, {4})[3] == doctest::Approx(8 - 0.1));
}

TEST_CASE(
    "with no threshold a row has all its columns from the start, and without counts a push is one show") {
  TableConfig config = ctr_table(3, 0.0f);
  config.accessor.kind = Accessor::Kind::sparse;
  SparseTable table(config);
  const auto first = pulled(table, {4});
  CHECK(first[0] == 0.0f);
  CHECK(first[1] >= 1.0f);
  const std::vector<std::uint64_t> keys{4};
  const std::vector<float> gradients{1.0f, 1.0f, 1.0f};
  table.push(keys, gradients.data());
  CHECK(pulled(table, {4})[1] == doctest::Approx(first[1] - 0.1));
  CHECK(read_statistics(row_of(table, 4).data()).show == 1.0f);
  CHECK(read_statistics(row_of(table, 4).data()).delta_score == doctest::Approx(0.1));
}

TEST_CASE("the row that Paddle 2.6.2 saved after an asynchronous step comes out of the same push") {
  // Facts: `1 0 0 0.2 2 0 0.1 -0.2 0.00399995 0.81 0.998001 …`,
  // then the rest untouched with the powers at the betas.
  TableConfig config = ctr_table(4, 0.1f);
  config.accessor.kind = Accessor::Kind::sparse;
  config.rule.kind = UpdateRule::Kind::pow_adam;
  config.rule.low = -10.0f;
  config.rule.high = 10.0f;
  SparseTable table(config);
  const std::vector<std::uint64_t> keys{1};
  const std::vector<float> gradients{-2.0f, -2.0f, -2.0f, -2.0f};
  const std::vector<float> shows{2.0f};
  const std::vector<float> clicks{0.0f};
  table.push(keys, gradients.data(), {shows, clicks, 0});
  const auto row = row_of(table, 1);
  const Statistics statistics = read_statistics(row.data());
  CHECK(statistics.slot == 0);
  CHECK(statistics.unseen_days() == 0);
  CHECK(statistics.delta_score == doctest::Approx(0.2));
  CHECK(statistics.show == 2.0f);
  CHECK(statistics.click == 0.0f);
  const RowLayout& layout = table.layout();
  const std::vector<double> embed{0.1, -0.2, 0.00399995, 0.81, 0.998001};
  CHECK(row[layout.statistics] == doctest::Approx(embed[0]));
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(row[layout.parts[0].state + i] == doctest::Approx(embed[i + 1]).epsilon(1e-5));
  }
  const float* rest = row.data() + layout.parts[1].state;
  for (std::size_t i = 0; i < 6; ++i) CHECK(rest[i] == 0.0f);
  CHECK(rest[6] == 0.9f);
  CHECK(rest[7] == 0.999f);
}

TEST_CASE("the first column may have a rule of its own") {
  TableConfig config = ctr_table(2, 0.0f);
  config.accessor.embed_rule = UpdateRule{};
  config.accessor.embed_rule->kind = UpdateRule::Kind::sum;
  SparseTable table(config);
  const auto before = pulled(table, {1});
  const std::vector<std::uint64_t> keys{1};
  const std::vector<float> gradients{1.0f, 1.0f};
  table.push(keys, gradients.data());
  const auto after = pulled(table, {1});
  CHECK(after[2] == before[2] + 1.0f);
  CHECK(after[3] == doctest::Approx(before[3] - 0.1));
}

TEST_CASE("shrink decays shows and clicks and erases what has expired, on any number of threads") {
  for (const unsigned threads : {1u, 3u}) {
    TableConfig config = ctr_table(1, 0.0f);
    config.accessor.show_click_decay_rate = 0.5f;
    config.accessor.delete_threshold = 0.1f;
    SparseTable table(config);
    std::vector<std::uint64_t> keys(2000);
    std::vector<float> shows(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      keys[i] = i;
      shows[i] = i % 2 == 0 ? 1.0f : 2.0f;
    }
    const std::vector<float> zeros(keys.size(), 0.0f);
    table.push(keys, zeros.data(), {shows, zeros, 0});
    CHECK(table.shrink(threads) == 1000);
    CHECK(table.rows() == 1000);
    CHECK(pulled(table, {1}, false)[0] == 1.0f);
    CHECK(table.shrink(threads) == 1000);
    CHECK(table.rows() == 0);
    table.push(keys, zeros.data(), {shows, zeros, 0});
    CHECK(table.rows() == 2000);
    CHECK(table.metrics().erased == 2000);
  }
  SparseTable plain(sparse_table(0, "t", 1));
  pulled(plain, {1, 2});
  CHECK(plain.shrink() == 0);
  CHECK(plain.rows() == 2);
}

TEST_CASE("a key gets its row with the push that admits it, and that push counts") {
  TableConfig config = sparse_table(0, "t", 1);
  config.initializer = {Initializer::Kind::constant, 100.0, 0.0, 0};
  config.admission.kind = Admission::Kind::count;
  config.admission.threshold = 3;
  SparseTable table(config);
  const std::vector<std::uint64_t> keys{0, ~0ull};
  const std::vector<float> ones{1.0f, 1.0f};
  for (int push = 1; push <= 2; ++push) {
    table.push(keys, ones.data());
    CHECK(pulled(table, keys) == std::vector<float>{100, 100});
    CHECK(table.rows() == 0);
  }
  table.push(keys, ones.data());
  CHECK(table.rows() == 2);
  CHECK(pulled(table, keys) == std::vector<float>{101, 101});
  CHECK(table.metrics().not_admitted == 4);
  CHECK(table.erase(keys) == 2);
  table.push(keys, ones.data());
  CHECK(table.rows() == 0);
}

TEST_CASE("only admitted keys get rows by a pull where admission is by probability") {
  TableConfig config = sparse_table(0, "t", 1);
  config.admission.kind = Admission::Kind::probability;
  config.admission.probability = 0.25;
  SparseTable table(config);
  std::vector<std::uint64_t> keys(4000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  pulled(table, keys);
  const std::uint64_t rows = table.rows();
  CHECK(rows > 800);
  CHECK(rows < 1200);
  const std::vector<float> ones(keys.size(), 1.0f);
  table.push(keys, ones.data());
  CHECK(table.rows() == rows);
}

TEST_CASE("an empty batch is nothing, and of equal keys in one push each counts") {
  SparseTable table(sparse_table(0, "t", 1));
  table.pull({}, nullptr);
  table.push({}, nullptr);
  CHECK(table.rows() == 0);
  const std::vector<std::uint64_t> keys(100, 7);
  const std::vector<float> ones(100, 1.0f);
  table.push(keys, ones.data());
  CHECK(pulled(table, {7}) == std::vector<float>{100});
  CHECK(table.rows() == 1);
  CHECK(table.erase(keys) == 1);
}
