// Servers whose tables hardly fit into memory, beside others that have all of it:
// a trainer sees no difference.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ps/disk/rocksdb_rows.h"
#include "ps/memory/in_process.h"
#include "tests/support/memory_cold_rows.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::tests::dense_table;
using fleetrun::tests::error_of;
using fleetrun::tests::sparse_table;
using fleetrun::tests::TempDir;

namespace {

constexpr std::uint64_t kBudget = 6000;

std::vector<TableConfig> tables() {
  std::vector<TableConfig> all{sparse_table(0, "wide", 5, UpdateRule::Kind::adagrad),
                               sparse_table(1, "deep", 3, UpdateRule::Kind::adam), dense_table(2, "fc", 7)};
  for (TableConfig& table : all) table.initializer = {Initializer::Kind::normal, 0.0, 1.0, table.id};
  all[0].on_disk = all[1].on_disk = true;
  all[0].accessor.kind = Accessor::Kind::sparse;
  all[0].accessor.show_click_decay_rate = 0.5f;
  all[0].accessor.delete_threshold = 0.06f;
  all[0].accessor.delta_threshold = 0.1f;
  return all;
}

std::vector<std::uint64_t> some_keys(std::mt19937_64& random) {
  std::set<std::uint64_t> keys;
  while (keys.size() < 50) keys.insert(random() % 2000);
  return {keys.begin(), keys.end()};
}

// One step of training, the same for equal random numbers.
class Step {
 public:
  explicit Step(unsigned seed) : random_(seed), wide_(some_keys(random_)), deep_(some_keys(random_)) {}

  std::vector<float> pull(Client& client) const {
    std::vector<float> rows(50 * 5 + 50 * 3 + 7);
    const std::span<float> all(rows);
    client.pull({.sparse = {{0, wide_, all.subspan(0, 250)}, {1, deep_, all.subspan(250, 150)}},
                 .dense = {{2, all.subspan(400)}}});
    return rows;
  }
  void push(Client& client, std::vector<float> gradients) const {
    std::mt19937_64 random = random_;
    for (float& gradient : gradients) gradient = static_cast<float>(random() % 100) / 100.0f - 0.5f;
    const std::span<const float> all(gradients);
    client.push({.thread = 0,
                 .sparse = {{0, wide_, all.subspan(0, 250)}, {1, deep_, all.subspan(250, 150)}},
                 .dense = {{2, all.subspan(400)}}});
  }

 private:
  std::mt19937_64 random_;
  std::vector<std::uint64_t> wide_;
  std::vector<std::uint64_t> deep_;
};

std::vector<float> step(Client& client, unsigned seed) {
  const Step step(seed);
  std::vector<float> rows = step.pull(client);
  step.push(client, rows);
  return rows;
}

TableMemory little_memory(const TempDir& directory) {
  return {open_rocksdb_store({directory.path().string(), "test", std::uint64_t{4} << 20}),
          std::make_shared<MemoryBudget>(kBudget)};
}

// Names and bytes of all files.
std::map<std::string, std::string> files_of(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename().string()] = std::string(std::istreambuf_iterator<char>(file), {});
  }
  return files;
}

// Fails when told to; its rows are those that it was given.
class FaultyStore final : public ColdStore {
 public:
  std::unique_ptr<ColdRows> open(const TableConfig&, std::size_t row_floats) override {
    auto rows = std::make_unique<MemoryColdRows>(row_floats);
    opened.push_back(rows.get());
    return rows;
  }
  void fail(bool yes) {
    for (MemoryColdRows* rows : opened) rows->fail(yes);
  }
  std::vector<MemoryColdRows*> opened;
};

}  // namespace

TEST_CASE("training on a table that lies on disk for the most part is training") {
  for (const Mode mode : {Mode::async, Mode::sync}) {
    const TempDir directory;
    const TableMemory memory = little_memory(directory);
    const auto small = std::move(make_in_process(2, 1, mode, tables(), memory).front());
    const auto whole = std::move(make_in_process(2, 1, mode, tables()).front());
    for (const auto& client : {small.get(), whole.get()}) {
      client->set_dense(2, std::vector<float>(7, 0.25f));
      client->begin_epoch(1);
    }
    for (unsigned i = 0; i < 200; ++i) {
      REQUIRE(step(*small, i) == step(*whole, i));
    }
    for (const std::uint32_t table : {0u, 1u}) CHECK(small->rows(table) == whole->rows(table));
    // Two servers and two batches of two tables, with about 50 rows of 73 bytes each.
    CHECK(memory.budget->used() < kBudget + 2 * 2 * 50 * 73);
  }
}

TEST_CASE(
    "saves of all modes and shrinks are those of a table in memory, and load into one that is on disk") {
  const TempDir directory;
  const TempDir saves;
  const auto whole = std::move(make_in_process(2, 1, Mode::async, tables()).front());
  auto small = std::move(make_in_process(2, 1, Mode::async, tables(), little_memory(directory)).front());
  for (const auto& client : {whole.get(), small.get()}) client->set_dense(2, std::vector<float>(7, 0.25f));
  for (unsigned i = 0; i < 80; ++i) {
    REQUIRE(step(*small, i) == step(*whole, i));
    if (i % 10 == 9) {
      const auto mode = static_cast<SaveMode>((i / 10) % 4);
      whole->save(saves.file("whole"), mode);
      small->save(saves.file("small"), mode);
      REQUIRE(files_of(saves.file("whole")) == files_of(saves.file("small")));
    }
    if (i % 35 == 34) REQUIRE(small->shrink(0) == whole->shrink(0));
    if (i % 40 == 39) {  // another number of servers goes on with it
      small->save(saves.file("all"));
      small =
          std::move(make_in_process(1 + i % 3, 1, Mode::async, tables(), little_memory(directory)).front());
      small->load(saves.file("all"));
      small->save(saves.file("again"));
      REQUIRE(small->rows(0) == whole->rows(0));
      small = std::move(make_in_process(2, 1, Mode::async, tables(), little_memory(directory)).front());
      small->load(saves.file("again"));
    }
  }
}

TEST_CASE("what the disk's trouble refuses has changed nothing, and can be done again") {
  const auto store = std::make_shared<FaultyStore>();
  const auto small = std::move(
      make_in_process(1, 1, Mode::async, tables(), {store, std::make_shared<MemoryBudget>(kBudget)}).front());
  const auto whole = std::move(make_in_process(1, 1, Mode::async, tables()).front());
  for (const auto& client : {small.get(), whole.get()}) client->set_dense(2, std::vector<float>(7, 0.25f));
  int refused = 0;
  for (unsigned i = 0; i < 100; ++i) {
    const Step step(i);
    const auto fails = [&](const std::function<void()>& action) {
      store->fail(true);
      const fleetrun::Error error = error_of(action);
      store->fail(false);
      const bool is_refused = error.kind() == fleetrun::ErrorKind::host;
      refused += is_refused ? 1 : 0;
      return is_refused;
    };
    if (i % 3 == 0) fails([&] { step.pull(*small); });
    const std::vector<float> rows = step.pull(*small);
    REQUIRE(rows == step.pull(*whole));
    if (i % 2 == 0 || fails([&] { step.push(*small, rows); })) step.push(*small, rows);
    step.push(*whole, rows);
  }
  CHECK(refused > 30);
}
