#include "ps/disk/rocksdb_rows.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/support/memory_cold_rows.h"
#include "tests/support/ps_tables.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun::ps;
using fleetrun::tests::error_of;
using fleetrun::tests::sparse_table;
using fleetrun::tests::TempDir;

namespace {

using Fate = ColdRows::Fate;

constexpr std::size_t kFloats = 3;
constexpr std::size_t kShards = 64;

std::unique_ptr<ColdRows> open_rows(const TempDir& directory) {
  return open_rocksdb_store({directory.path().string(), "job j, server 0", std::uint64_t{4} << 20})
      ->open(sparse_table(0, "t", 2), kFloats);
}

std::vector<float> row_of(std::uint64_t key) {
  return {static_cast<float>(key % 1000), 0.5f, -static_cast<float>(key % 7)};
}

std::vector<float> rows_of(const std::vector<std::uint64_t>& keys) {
  std::vector<float> rows;
  for (const std::uint64_t key : keys) {
    const std::vector<float> row = row_of(key);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

bool are_equal(const ColdBlock& a, const ColdBlock& b) {
  return a.keys == b.keys && a.rows == b.rows;
}

// Both take the same steps; a step's random numbers are its own.
class Pair {
 public:
  explicit Pair(const TempDir& directory) : disk_(open_rows(directory)), map_(kFloats) {}

  void step(std::mt19937_64& random) {
    const std::size_t shard = random() % kShards;
    const std::vector<std::uint64_t> keys = distinct(random);
    switch (random() % 6) {
      case 0:
      case 1:
        return put(shard, keys);
      case 2:
      case 3:
        return take(shard, keys);
      case 4:
        disk_->erase(shard, keys);
        return map_.erase(shard, keys);
      default:
        return rewrite(shard, random());
    }
  }

  void compare(const ColdView& a, const ColdView& b) const {
    for (std::size_t shard = 0; shard < kShards; ++shard) {
      REQUIRE(a.count(shard) == b.count(shard));
      std::uint64_t from = 0;
      for (;;) {
        const ColdBlock here = a.read(shard, from, 5);
        REQUIRE(are_equal(here, b.read(shard, from, 5)));
        if (here.keys.size() < 5) break;
        from = here.keys.back() + 1;
      }
    }
  }

  ColdRows& disk() { return *disk_; }
  ColdRows& map() { return map_; }

 private:
  static std::vector<std::uint64_t> distinct(std::mt19937_64& random) {
    std::vector<std::uint64_t> keys;
    const std::uint64_t stride = 1 + random() % 40;
    for (std::uint64_t key = random() % 300; keys.size() < 30; key += stride)
      keys.push_back(key * 0x123456789abcdefull);
    std::shuffle(keys.begin(), keys.end(), random);
    return keys;
  }

  void put(std::size_t shard, const std::vector<std::uint64_t>& keys) {
    take(shard, keys);
    disk_->put(shard, keys, rows_of(keys));
    map_.put(shard, keys, rows_of(keys));
  }

  void take(std::size_t shard, const std::vector<std::uint64_t>& keys) {
    std::vector<float> here(keys.size() * kFloats);
    std::vector<float> there(keys.size() * kFloats);
    const std::vector<std::uint32_t> found = disk_->take(shard, keys, here);
    REQUIRE(found == map_.take(shard, keys, there));
    REQUIRE(here == there);
  }

  void rewrite(std::size_t shard, std::uint64_t salt) {
    const auto decide = [salt](std::uint64_t key, std::span<float> row) {
      row[1] += 1.0f;
      return static_cast<Fate>((key ^ salt) % 3);
    };
    disk_->rewrite(shard, decide);
    map_.rewrite(shard, decide);
  }

  std::unique_ptr<ColdRows> disk_;
  MemoryColdRows map_;
};

}  // namespace

TEST_CASE("cold rows on disk are those that a map would hold, in every view") {
  for (const unsigned seed : {1u, 2u, 3u}) {
    const TempDir directory;
    Pair pair(directory);
    std::mt19937_64 random(seed);
    for (int step = 0; step < 300; ++step) pair.step(random);
    const auto disk_then = pair.disk().view();
    const auto map_then = pair.map().view();
    for (int step = 0; step < 300; ++step) pair.step(random);
    pair.compare(*disk_then, *map_then);
    pair.compare(*pair.disk().view(), *pair.map().view());
    for (std::size_t shard = 0; shard < kShards; ++shard) {
      REQUIRE(pair.disk().count(shard) == pair.map().count(shard));
    }
  }
}

TEST_CASE("the first and the last key of the first and the last shard are keys like others") {
  const TempDir directory;
  const auto rows = open_rows(directory);
  const std::vector<std::uint64_t> keys{~0ull, 0, 1ull << 63};
  for (const std::size_t shard : {0, 1, 63}) rows->put(shard, keys, rows_of(keys));
  const auto view = rows->view();
  for (const std::size_t shard : {0, 1, 63}) {
    const ColdBlock all = view->read(shard, 0, 10);
    CHECK(all.keys == std::vector<std::uint64_t>{0, 1ull << 63, ~0ull});
    CHECK(view->read(shard, ~0ull, 10).keys == std::vector<std::uint64_t>{~0ull});
    std::vector<float> taken(keys.size() * kFloats);
    CHECK(rows->take(shard, keys, taken) == std::vector<std::uint32_t>{0, 1, 2});
    CHECK(taken == rows_of(keys));
    CHECK(rows->take(shard, keys, taken).empty());
  }
}

TEST_CASE("a view outlives the rows that it is of, and their directory goes with the last of both") {
  const TempDir directory;
  auto rows = open_rows(directory);
  const std::vector<std::uint64_t> keys{4, 2};
  rows->put(7, keys, rows_of(keys));
  auto view = rows->view();
  rows.reset();
  CHECK(view->read(7, 0, 10).keys == std::vector<std::uint64_t>{2, 4});
  CHECK_FALSE(std::filesystem::is_empty(directory.path()));
  view.reset();
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("two tables of the same name have directories of their own") {
  const TempDir directory;
  const auto one = open_rows(directory);
  const auto other = open_rows(directory);
  const std::vector<std::uint64_t> keys{1};
  one->put(0, keys, rows_of(keys));
  CHECK(other->count(0) == 0);
  CHECK(other->view()->read(0, 0, 1).keys.empty());
}

TEST_CASE("a directory that cannot be made is named, with what helps") {
  const TempDir directory;
  const std::string file = directory.write("file", "");
  const fleetrun::Error error = error_of([&] {
    open_rocksdb_store({file + "/below", "job j, server 0"})->open(sparse_table(0, "t", 2), kFloats);
  });
  CHECK(error.kind() == fleetrun::ErrorKind::host);
  CHECK(std::string(error.what()).find("cannot make the directory " + file + "/below") == 0);
  CHECK(error.hint() ==
        "name a directory on a local disk that the servers may write to, with FLEETRUN_PS_DISK");
}
