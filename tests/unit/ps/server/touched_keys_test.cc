#include "ps/server/touched_keys.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

using fleetrun::ps::TouchedKeys;

namespace {

using Keys = std::vector<std::uint64_t>;

Keys sorted(Keys keys) {
  std::ranges::sort(keys);
  return keys;
}

}  // namespace

TEST_CASE("a trainer hears of what others have pushed since its last ask, once, and not of its own") {
  TouchedKeys touched;
  CHECK(touched.ask({0, 7, 1}, 100).keys.empty());
  CHECK(touched.ask({1, 8, 1}, 100).keys.empty());
  touched.record(0, 5, Keys{1, 2, 3});
  touched.record(0, 5, Keys{3, 4});
  touched.record(1, 6, Keys{9});
  const auto first = touched.ask({0, 7, 2}, 100);
  CHECK(first.keys.size() == 1);
  CHECK(first.keys.at(6) == Keys{9});
  const auto second = touched.ask({1, 8, 2}, 100);
  CHECK(second.keys.size() == 1);
  CHECK(sorted(second.keys.at(5)) == Keys{1, 2, 3, 4});
  CHECK(!second.more);
  CHECK(second.generation == first.generation);
  CHECK(touched.ask({1, 8, 3}, 100).keys.empty());
}

TEST_CASE("an answer that was lost is given again") {
  TouchedKeys touched;
  touched.ask({0, 7, 1}, 100);
  touched.record(1, 0, Keys{1, 2});
  const auto lost = touched.ask({0, 7, 2}, 100);
  touched.record(1, 0, Keys{3});
  CHECK(touched.ask({0, 7, 2}, 100).keys == lost.keys);
  CHECK(touched.ask({0, 7, 3}, 100).keys.at(0) == Keys{3});
}

TEST_CASE("many keys come in portions, and each once") {
  TouchedKeys touched;
  touched.ask({0, 7, 1}, 10);
  for (std::uint64_t key = 0; key < 25; ++key) touched.record(1, key % 2, Keys{key});
  std::set<std::uint64_t> seen;
  bool more = true;
  std::uint64_t number = 1;
  while (more) {
    const auto answer = touched.ask({0, 7, ++number}, 10);
    std::size_t count = 0;
    for (const auto& [table, keys] : answer.keys) {
      for (const std::uint64_t key : keys) {
        CHECK(key % 2 == table);
        CHECK(seen.insert(key).second);
        ++count;
      }
    }
    CHECK(count <= 10);
    more = answer.more;
  }
  CHECK(seen.size() == 25);
  CHECK(number == 4);
}

TEST_CASE("another incarnation, a goodbye and a restart begin anew; only the restart is another generation") {
  TouchedKeys touched;
  const std::uint64_t generation = touched.ask({0, 7, 1}, 10).generation;
  touched.record(1, 0, Keys{1});
  const auto again = touched.ask({0, 8, 1}, 10);
  CHECK(again.keys.empty());
  CHECK(again.generation == generation);
  touched.forget(0);
  touched.record(1, 0, Keys{2});
  CHECK(touched.ask({0, 8, 2}, 10).keys.empty());
  touched.record(1, 0, Keys{3});
  touched.restart();
  const auto after = touched.ask({0, 8, 3}, 10);
  CHECK(after.keys.empty());
  CHECK(after.generation != generation);
}
