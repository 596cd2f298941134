// table_cut.cc and server_saving.cc: what each mode of a save holds, and what it changes.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include "ps/memory/in_process.h"
#include "ps/saving/snapshot.h"
#include "ps/saving/table_cut.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::tests::dense_table;
using fleetrun::tests::sparse_table;
using fleetrun::tests::TempDir;

namespace {

// A push shows its keys once: a score of 1.
TableConfig scored_table() {
  TableConfig config = sparse_table(0, "t", 1);
  config.accessor.kind = Accessor::Kind::sparse;
  config.accessor.nonclk_coeff = 1.0f;
  config.accessor.base_threshold = 2.0f;
  config.accessor.delta_threshold = 2.0f;
  return config;
}

std::unique_ptr<Client> one_client(std::uint32_t servers, const std::vector<TableConfig>& tables) {
  return std::move(make_in_process(servers, 1, Mode::async, tables)[0]);
}

void push_ones(Client& client, const std::vector<std::uint64_t>& keys) {
  const std::vector<float> ones(keys.size(), 1.0f);
  client.push({.thread = 0, .sparse = {{0, keys, ones}}, .dense = {}});
}

// Each row's statistics, in tables that nothing else knows.
std::map<std::uint64_t, Statistics> saved_rows(const std::string& directory,
                                               const std::vector<TableConfig>& tables) {
  const LoadedTables loaded = load_tables(directory, {}, tables);
  std::map<std::uint64_t, Statistics> out;
  for (std::size_t shard = 0; shard < SparseTable::kShards; ++shard) {
    loaded.tables->sparse(0).visit(shard, [&](std::uint64_t key, std::span<const float> row) {
      out[key] = read_statistics(row.data());
    });
  }
  return out;
}

std::vector<std::uint64_t> keys_of(const std::map<std::uint64_t, Statistics>& rows) {
  std::vector<std::uint64_t> keys;
  for (const auto& [key, statistics] : rows) keys.push_back(key);
  return keys;
}

}  // namespace

TEST_CASE(
    "a delta holds what has changed much since the last one, which a save that fails does not count as") {
  const std::vector<TableConfig> tables{scored_table()};
  const TempDir dir;
  const auto client = one_client(2, tables);
  for (int i = 0; i < 3; ++i) push_ones(*client, {1, 2});
  push_ones(*client, {3});
  client->save(dir.file("a"), SaveMode::delta);
  CHECK(keys_of(saved_rows(dir.file("a"), tables)) == std::vector<std::uint64_t>{1, 2});
  push_ones(*client, {1, 3});
  client->save(dir.file("b"), SaveMode::delta);
  CHECK(keys_of(saved_rows(dir.file("b"), tables)) == std::vector<std::uint64_t>{3});
  push_ones(*client, {1});
  // In the manifest's way: the parts are written, and never committed.
  std::filesystem::create_directories(dir.file("c/manifest-0.tmp"));
  CHECK(fleetrun::tests::text_of([&] { client->save(dir.file("c"), SaveMode::delta); }) != "no error");
  client->save(dir.file("d"), SaveMode::delta);
  CHECK(keys_of(saved_rows(dir.file("d"), tables)) == std::vector<std::uint64_t>{1});
  client->save(dir.file("e"), SaveMode::delta);
  CHECK(keys_of(saved_rows(dir.file("e"), tables)).empty());
}

TEST_CASE("a base holds the rows of high score, and deltas count from it") {
  const std::vector<TableConfig> tables{scored_table()};
  const TempDir dir;
  const auto client = one_client(1, tables);
  for (int i = 0; i < 2; ++i) push_ones(*client, {1, 2});
  push_ones(*client, {2, 3});
  client->save(dir.file("base"), SaveMode::base);
  const auto base = saved_rows(dir.file("base"), tables);
  CHECK(keys_of(base) == std::vector<std::uint64_t>{1, 2});
  CHECK(base.at(2).delta_score == 3.0f);
  CHECK(base.at(2).show == 3.0f);
  for (int i = 0; i < 2; ++i) push_ones(*client, {1});
  push_ones(*client, {2});
  client->save(dir.file("delta"), SaveMode::delta);
  CHECK(keys_of(saved_rows(dir.file("delta"), tables)) == std::vector<std::uint64_t>{1});
  client->save(dir.file("all"), SaveMode::all);
  const auto all = saved_rows(dir.file("all"), tables);
  CHECK(all.size() == 3);
  CHECK(all.at(1).delta_score == 0.0f);
  CHECK(all.at(2).delta_score == 1.0f);
  CHECK(all.at(3).delta_score == 1.0f);
}

TEST_CASE("after a save of mode 3 a day has passed for every row, in the tables and for who loads it") {
  const std::vector<TableConfig> tables{scored_table()};
  const TempDir dir;
  const auto client = one_client(2, tables);
  push_ones(*client, {1, 2});
  client->save(dir.file("a"), SaveMode::checkpoint);
  push_ones(*client, {2});
  client->save(dir.file("b"), SaveMode::checkpoint);
  client->save(dir.file("c"), SaveMode::all);
  for (const auto& [name, days] :
       std::map<std::string, std::vector<int>>{{"a", {1, 1}}, {"b", {2, 1}}, {"c", {2, 1}}}) {
    const auto rows = saved_rows(dir.file(name), tables);
    CHECK(rows.at(1).unseen_days() == days[0]);
    CHECK(rows.at(2).unseen_days() == days[1]);
  }
}

TEST_CASE("days that are jobs of their own age rows as those of one job, on any number of servers") {
  std::vector<TableConfig> tables{scored_table()};
  tables[0].accessor.delete_after_unseen_days = 2.0f;
  const TempDir dir;
  const std::vector<std::uint64_t> keys{1, 2};
  auto client = one_client(2, tables);
  push_ones(*client, keys);
  for (const std::uint32_t servers : {3, 1, 2}) {
    client->save(dir.file("day"), SaveMode::checkpoint);
    const auto here = client->get(0, keys).statistics;
    client = one_client(servers, tables);
    client->load(dir.file("day"));
    const auto there = client->get(0, keys).statistics;
    for (std::size_t i = 0; i < keys.size(); ++i) CHECK(there[i].unseen_days == here[i].unseen_days);
    push_ones(*client, {2});
  }
  CHECK(client->get(0, keys).statistics[0].unseen_days == 3);
  CHECK(client->shrink(0) == 1);
  CHECK(client->get(0, keys).found == std::vector<bool>{false, true});
}

TEST_CASE("a base and the deltas after it, loaded in their order, give what was trained") {
  const std::vector<TableConfig> tables{scored_table(), dense_table(1, "d", 3)};
  const TempDir dir;
  const auto client = one_client(2, tables);
  client->set_dense(1, std::vector<float>{1, 2, 3});
  for (int i = 0; i < 2; ++i) push_ones(*client, {1, 2, 3});
  client->save(dir.file("base"), SaveMode::base);
  for (int i = 0; i < 2; ++i) push_ones(*client, {3, 4});
  client->set_dense(1, std::vector<float>{4, 5, 6});
  client->save(dir.file("delta"), SaveMode::delta);
  const auto other = one_client(3, tables);
  other->load(dir.file("base"));
  CHECK(other->rows(0) == 3);
  other->load(dir.file("delta"));
  CHECK(other->rows(0) == 4);
  std::vector<std::uint64_t> keys{1, 2, 3, 4};
  std::vector<float> rows(4);
  std::vector<float> dense(3);
  other->pull({.sparse = {{0, keys, rows}}, .dense = {{1, dense}}});
  CHECK(rows == std::vector<float>{2, 2, 4, 2});
  CHECK(dense == std::vector<float>{4, 5, 6});
}

TEST_CASE("tables without statistics are whole in every mode") {
  const std::vector<TableConfig> tables{sparse_table(0, "t", 1)};
  const TempDir dir;
  const auto client = one_client(2, tables);
  push_ones(*client, {1, 2, 3});
  for (const SaveMode mode : {SaveMode::delta, SaveMode::base, SaveMode::checkpoint}) {
    client->save(dir.file("s"), mode);
    const auto other = one_client(1, tables);
    other->load(dir.file("s"));
    CHECK(other->rows(0) == 3);
  }
}

TEST_CASE("what admission has counted is saved, and counts on in any number of servers") {
  std::vector<TableConfig> tables{sparse_table(0, "t", 1)};
  tables[0].admission = {Admission::Kind::count, 3};
  const TempDir dir;
  const auto client = one_client(2, tables);
  push_ones(*client, {1, 2, 3, 4, 5});
  push_ones(*client, {1, 2, 3, 4, 5});
  client->save(dir.file("s"));
  for (const std::uint32_t servers : {1, 2, 3}) {
    const auto other = one_client(servers, tables);
    other->load(dir.file("s"));
    CHECK(other->rows(0) == 0);
    push_ones(*other, {1, 2, 3, 4, 5, 6});
    CHECK(other->rows(0) == 5);
  }
}

TEST_CASE("a save beside training holds each push on all servers or on none") {
  const std::vector<TableConfig> tables{sparse_table(0, "t", 1), dense_table(1, "d", 8)};
  const TempDir dir;
  auto clients = make_in_process(3, 3, Mode::async, tables);
  std::vector<std::uint64_t> keys(600);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i * 7919;
  clients[0]->set_dense(1, std::vector<float>(8, 0.0f));
  std::atomic<bool> done = false;
  std::vector<std::jthread> trainers;
  for (const int trainer : {1, 2}) {
    trainers.emplace_back([&, trainer] {
      const std::vector<float> ones(keys.size(), 1.0f);
      for (int push = 0; push < 20 || !done; ++push) {
        clients[trainer]->push(
            {.thread = 0, .sparse = {{0, keys, ones}}, .dense = {{1, std::span(ones).first(8)}}});
      }
    });
  }
  std::vector<float> seen;
  for (int save = 0; save < 10; ++save) {
    clients[0]->save(dir.file("s"));
    const auto other = one_client(2, tables);
    REQUIRE(other->load(dir.file("s")).empty());
    std::vector<float> rows(keys.size());
    std::vector<float> dense(8);
    other->pull({.sparse = {{0, keys, rows}}, .dense = {{1, dense}}});
    for (const float row : rows) REQUIRE(row == rows[0]);
    for (const float value : dense) REQUIRE(value == rows[0]);
    seen.push_back(rows[0]);
  }
  done = true;
  CHECK(std::is_sorted(seen.begin(), seen.end()));
}
