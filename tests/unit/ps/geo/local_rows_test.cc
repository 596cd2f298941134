#include "ps/geo/local_rows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::sparse_table;

namespace {

using Keys = std::vector<std::uint64_t>;
using Values = std::vector<float>;

Values values_of(SparseTable& table, const Keys& keys) {
  Values values(keys.size() * table.config().width);
  table.pull(keys, values.data());
  return values;
}

}  // namespace

TEST_CASE("rows are asked for until they have arrived, each once a batch") {
  SparseTable table(sparse_table(0, "t", 1));
  LocalRows rows(table);
  CHECK(rows.claim(Keys{3, 1, 3}) == Keys{1, 3});
  CHECK(rows.claim(Keys{1}) == Keys{1});
  rows.arrive(Keys{1, 3}, Values{10, 30});
  CHECK(rows.claim(Keys{1, 3}).empty());
  CHECK(values_of(table, {1, 3}) == Values{10, 30});
  // A second answer to the same question is older than what was held meanwhile.
  table.push(Keys{1}, Values{5}.data());
  rows.arrive(Keys{1}, Values{10});
  CHECK(values_of(table, {1}) == Values{15});
}

TEST_CASE("a share of what was changed is taken once, and counts as the servers'") {
  SparseTable table(sparse_table(0, "t", 2));
  LocalRows rows(table);
  rows.claim(Keys{1, 2});
  rows.arrive(Keys{1, 2}, Values{0, 0, 8, 8});
  table.push(Keys{1}, Values{4, 8}.data());
  rows.touch(Keys{1, 99});
  auto changes = rows.take_changes(0.5f);
  CHECK(changes.keys == Keys{1});
  CHECK(changes.values == Values{2, 4});
  CHECK(rows.take_changes(0.5f).keys.empty());
  // The other half goes with the next change.
  table.push(Keys{1}, Values{2, 0}.data());
  rows.touch(Keys{1});
  changes = rows.take_changes(0.5f);
  CHECK(changes.values == Values{2, 2});
}

TEST_CASE("what the servers changed is added to what is held, and an awaited row arrives with it") {
  SparseTable table(sparse_table(0, "t", 1));
  LocalRows rows(table);
  rows.claim(Keys{1});
  rows.arrive(Keys{1}, Values{10});
  table.push(Keys{1}, Values{3}.data());
  rows.touch(Keys{1});
  rows.claim(Keys{2});
  rows.follow(Keys{1, 2, 3}, Values{11, 20, 30});
  CHECK(values_of(table, {1, 2}) == Values{14, 20});
  CHECK(rows.take_changes(1.0f).values == Values{3});
  // Asked for before the servers told: older.
  rows.arrive(Keys{2}, Values{19});
  CHECK(values_of(table, {2}) == Values{20});
  Keys held = rows.held_keys();
  std::ranges::sort(held);
  CHECK(held == Keys{1, 2});
}
