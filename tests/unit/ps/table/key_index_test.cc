#include "ps/table/key_index.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <vector>

using fleetrun::ps::KeyIndex;

TEST_CASE("keys are numbered in the order in which they come, as a map would") {
  KeyIndex index;
  std::map<std::uint64_t, std::uint32_t> expected;
  CHECK(index.find(0) == KeyIndex::kNone);
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t key = random() % 5000 * 0x100000001ull;
    const auto number = static_cast<std::uint32_t>(expected.size());
    CHECK(index.add(key) == expected.emplace(key, number).first->second);
  }
  CHECK(index.size() == expected.size());
  for (const auto& [key, number] : expected) {
    REQUIRE(index.find(key) == number);
    REQUIRE(index.keys()[number] == key);
  }
  CHECK(index.find(1) == KeyIndex::kNone);
  CHECK(index.take().size() == expected.size());
  CHECK(index.size() == 0);
  CHECK(index.find(0) == KeyIndex::kNone);
  CHECK(index.add(~0ull) == 0);
}
