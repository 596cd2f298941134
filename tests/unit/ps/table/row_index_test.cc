#include "ps/table/row_index.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <vector>

using namespace fleetrun::ps;

namespace {

struct Keys {
  std::vector<std::uint64_t> keys;
  std::uint64_t operator()(std::uint32_t row) const { return keys[row]; }
};

}  // namespace

TEST_CASE("an index holds what a map would hold, through growth and removal") {
  RowIndex index;
  Keys keys;
  std::map<std::uint64_t, std::uint32_t> expected;
  std::mt19937_64 random(3);
  for (int i = 0; i < 60000; ++i) {
    const std::uint64_t key = random() % 20000;
    const auto found = expected.find(key);
    const std::uint32_t row = index.find(row_hash(key), key, keys);
    REQUIRE(row == (found == expected.end() ? RowIndex::kNone : found->second));
    if (row != RowIndex::kNone) {
      if (i % 3 != 0) continue;
      index.remove(row_hash(key), row);
      expected.erase(key);
      continue;
    }
    if (index.is_full()) {
      index.grow();
      for (const auto& [there, at] : expected) index.add(row_hash(there), at);
    }
    keys.keys.push_back(key);
    expected[key] = static_cast<std::uint32_t>(keys.keys.size() - 1);
    index.add(row_hash(key), expected[key]);
  }
  CHECK(index.size() == expected.size());
  for (const auto& [key, row] : expected) REQUIRE(index.find(row_hash(key), key, keys) == row);
}

TEST_CASE("a lookup ends in a full index, and after all were removed") {
  RowIndex index;
  index.grow();
  Keys keys;
  while (!index.is_full()) {
    keys.keys.push_back(keys.keys.size() * 977);
    index.add(row_hash(keys.keys.back()), static_cast<std::uint32_t>(keys.keys.size() - 1));
  }
  for (std::uint64_t key = 1; key < 2000; ++key) {
    if (key % 977 != 0) REQUIRE(index.find(row_hash(key), key, keys) == RowIndex::kNone);
  }
  for (std::uint32_t row = 0; row < keys.keys.size(); ++row) index.remove(row_hash(keys.keys[row]), row);
  CHECK(index.size() == 0);
  for (const std::uint64_t key : keys.keys) CHECK(index.find(row_hash(key), key, keys) == RowIndex::kNone);
}

TEST_CASE("an index takes at most ten bytes a row, just after it grew too") {
  RowIndex index;
  std::uint32_t rows = 0;
  for (; rows < 200000; ++rows) {
    if (index.is_full()) {
      index.grow();
      for (std::uint32_t row = 0; row < rows; ++row) index.add(row_hash(row), row);
      if (rows > 1000) REQUIRE(index.bytes() < std::size_t{10} * rows);
    }
    index.add(row_hash(rows), rows);
  }
}
