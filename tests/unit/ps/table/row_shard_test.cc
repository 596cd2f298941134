#include "ps/table/row_shard.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

using namespace fleetrun::ps;

TEST_CASE("rows lie where they were put, and their numbers are used again") {
  const RowPlaces places(3);
  RowArena arena(places.slab_floats());
  RowShard shard(arena, places);
  for (std::uint64_t key = 0; key < 20000; ++key) {
    const std::uint32_t row = shard.add(row_hash(key), key);
    shard.at(row)[0] = static_cast<float>(key);
    shard.at(row)[2] = static_cast<float>(key + 1);
  }
  CHECK(shard.size() == 20000);
  CHECK(shard.end() == 20000);
  std::set<std::uint32_t> freed;
  for (std::uint64_t key = 0; key < 20000; key += 3) {
    const std::uint32_t row = shard.find(row_hash(key), key);
    shard.remove(row_hash(key), row);
    CHECK(!shard.is_live(row));
    freed.insert(row);
  }
  for (std::uint64_t key = 0; key < 20000; ++key) {
    const std::uint32_t row = shard.find(row_hash(key), key);
    if (key % 3 == 0) {
      REQUIRE(row == RowShard::kNone);
      continue;
    }
    REQUIRE(shard.key_at(row) == key);
    REQUIRE(shard.at(row)[0] == static_cast<float>(key));
    REQUIRE(shard.at(row)[2] == static_cast<float>(key + 1));
  }
  for (std::uint64_t key = 50000; key < 50100; ++key) CHECK(freed.contains(shard.add(row_hash(key), key)));
  CHECK(shard.end() == 20000);
}

TEST_CASE("a guess is fetched only where a row may be the key's") {
  const RowPlaces places(3);
  RowArena arena(places.slab_floats());
  RowShard shard(arena, places);
  CHECK(shard.prefetch_row(row_hash(1), 8) == RowShard::kNone);
  const std::uint32_t row = shard.add(row_hash(1), 1);
  CHECK(shard.prefetch_row(row_hash(1), 8) == row);
}
