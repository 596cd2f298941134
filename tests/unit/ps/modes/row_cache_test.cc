#include "ps/modes/row_cache.h"

#include <doctest/doctest.h>

#include <vector>

#include "ps/memory/in_process.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"

using namespace fleetrun::ps;
using fleetrun::Environ;
using fleetrun::Error;

namespace {

std::vector<TableConfig> tables() {
  TableConfig config;
  config.name = "sum";
  config.kind = TableConfig::Kind::sparse;
  config.width = 2;
  config.rule.kind = UpdateRule::Kind::sum;
  return {config};
}

// Two trainers; the first has a cache.
struct Pair {
  std::unique_ptr<RowCache> cached;
  std::unique_ptr<Client> other;

  explicit Pair(std::uint64_t steps, std::size_t bytes = 1 << 20) {
    auto clients = make_in_process(2, 2, Mode::async, tables());
    cached = std::make_unique<RowCache>(std::move(clients[0]), tables(), RowCacheOptions{steps, bytes});
    other = std::move(clients[1]);
  }
};

std::vector<float> pull(Client& client, const std::vector<std::uint64_t>& keys) {
  std::vector<float> rows(keys.size() * 2);
  client.pull({.sparse = {{0, keys, rows}}, .dense = {}});
  return rows;
}

void push(Client& client, const std::vector<std::uint64_t>& keys, float value) {
  const std::vector<float> gradients(keys.size() * 2, value);
  client.push({.thread = 0, .sparse = {{0, keys, gradients}}, .dense = {}});
}

}  // namespace

TEST_CASE("row cache: a row is at most so many steps old") {
  const Pair pair(2);
  CHECK(pull(*pair.cached, {1}) == std::vector<float>{0, 0});
  push(*pair.other, {1}, 5);
  for (int step = 0; step < 2; ++step) {
    CHECK(pull(*pair.cached, {1}) == std::vector<float>{0, 0});
    push(*pair.cached, {9}, 1);
  }
  CHECK(pull(*pair.cached, {1}) == std::vector<float>{0, 0});
  push(*pair.cached, {9}, 1);
  CHECK(pull(*pair.cached, {1}) == std::vector<float>{5, 5});
  CHECK(pair.cached->metrics().rows == 5);
  CHECK(pair.cached->metrics().hits == 3);
}

TEST_CASE("row cache: hits and misses of one pull, and the same key twice") {
  const Pair pair(10);
  push(*pair.other, {1, 2, 3}, 4);
  CHECK(pull(*pair.cached, {2}) == std::vector<float>{4, 4});
  push(*pair.other, {1, 2, 3}, 1);
  CHECK(pull(*pair.cached, {1, 2, 1, 3}) == std::vector<float>{5, 5, 4, 4, 5, 5, 5, 5});
  CHECK(pull(*pair.cached, {}).empty());
}

TEST_CASE("row cache: memory is bounded") {
  const Pair pair(1000, 256);
  std::vector<std::uint64_t> keys(500);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  push(*pair.other, keys, 3);
  CHECK(pull(*pair.cached, keys) == std::vector<float>(1000, 3));
  CHECK(pull(*pair.cached, keys) == std::vector<float>(1000, 3));
  CHECK(pair.cached->metrics().hits <= 16);
}

TEST_CASE("row cache: what is wrong with a pull is said, not hidden") {
  const Pair pair(3);
  const std::vector<std::uint64_t> keys{1};
  std::vector<float> rows(3);
  CHECK_THROWS_AS(pair.cached->pull({.sparse = {{0, keys, rows}}, .dense = {}}), Error);
  CHECK_THROWS_AS(pair.cached->pull({.sparse = {{7, keys, rows}}, .dense = {}}), Error);
}

TEST_CASE("row cache: shrinking empties it") {
  const Pair pair(100);
  CHECK(pull(*pair.cached, {1}) == std::vector<float>{0, 0});
  push(*pair.other, {1}, 5);
  static_cast<void>(pair.cached->shrink(0));
  CHECK(pull(*pair.cached, {1}) == std::vector<float>{5, 5});
}

TEST_CASE("row cache: assigning empties it") {
  const Pair pair(100);
  CHECK(pull(*pair.cached, {1}) == std::vector<float>{0, 0});
  const std::vector<std::uint64_t> keys{1};
  const std::vector<float> rows{3, 4};
  pair.cached->assign(0, keys, rows);
  CHECK(pull(*pair.cached, {1}) == rows);
}

TEST_CASE("row cache: who may have one") {
  CHECK(row_cache_of(Environ{}).steps == 0);
  CHECK(row_cache_of(Environ{{"FLEETRUN_PS_CACHE", "12"}}).steps == 12);
  for (const char* wrong : {"x", "-1", "1.5", ""})
    CHECK_THROWS_AS(row_cache_of(Environ{{"FLEETRUN_PS_CACHE", wrong}}), Error);
  CHECK(with_row_cache(nullptr, Mode::sync, tables(), {0, 1}) == nullptr);
  CHECK_THROWS_AS(with_row_cache(nullptr, Mode::sync, tables(), {1, 1}), Error);
  CHECK_THROWS_AS(with_row_cache(nullptr, Mode::geo, tables(), {1, 1}), Error);
}
