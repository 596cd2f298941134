#include "ps/table/dense_table.h"

#include <doctest/doctest.h>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::dense_table;

TEST_CASE("a block over several stripes is updated as one with one step count") {
  constexpr std::size_t kSize = 40000;
  DenseTable table(dense_table(0, "fc", kSize, UpdateRule::Kind::adam), kSize);
  CHECK(!table.has_values());
  table.set(std::vector<float>(kSize, 1.0f));
  CHECK(table.has_values());
  const std::vector<float> gradients(kSize, 2.0f);
  for (int i = 0; i < 3; ++i) table.push(gradients);
  std::vector<float> values(kSize);
  table.pull(values);
  for (const float value : values) REQUIRE(value == values[0]);
  // Three adam steps of the learning rate 0.5.
  CHECK(values[0] == doctest::Approx(-0.5));
  CHECK(table.contents().steps == 3);
}

TEST_CASE("set starts the optimizer over") {
  DenseTable table(dense_table(0, "fc", 2, UpdateRule::Kind::adagrad), 2);
  const std::vector<float> zeros(2, 0.0f);
  const std::vector<float> gradients(2, 4.0f);
  std::vector<float> first(2);
  std::vector<float> second(2);
  table.set(zeros);
  table.push(gradients);
  table.pull(first);
  table.set(zeros);
  table.push(gradients);
  table.pull(second);
  CHECK(first == second);
  CHECK(first[0] == doctest::Approx(-0.5));
}

TEST_CASE("contents come back as they were, with all kinds of state apart") {
  constexpr std::size_t kSize = 20000;
  const TableConfig config = dense_table(0, "fc", kSize, UpdateRule::Kind::adam);
  DenseTable table(config, kSize);
  table.set(std::vector<float>(kSize, 0.0f));
  std::vector<float> gradients(kSize);
  for (std::size_t i = 0; i < kSize; ++i) gradients[i] = static_cast<float>(i % 7) - 3.0f;
  table.push(gradients);
  const DenseTable::Contents contents = table.contents();
  CHECK(contents.state[kSize - 1] == doctest::Approx(0.1 * gradients[kSize - 1]));
  CHECK(contents.state[kSize] == doctest::Approx(0.001 * gradients[0] * gradients[0]));
  DenseTable copy(config, kSize);
  copy.restore(contents);
  table.push(gradients);
  copy.push(gradients);
  CHECK(copy.contents().values == table.contents().values);
  CHECK(copy.contents().state == table.contents().state);
  CHECK(copy.contents().steps == 2);
}

TEST_CASE("an empty block has nothing to wait for") {
  DenseTable table(dense_table(0, "fc", 1), 0);
  CHECK(table.has_values());
  table.push({});
  table.pull({});
}

TEST_CASE("add passes the rule by") {
  constexpr std::size_t kSize = 40000;
  DenseTable table(dense_table(0, "fc", kSize, UpdateRule::Kind::adam), kSize);
  table.set(std::vector<float>(kSize, 1.0f));
  table.add(std::vector<float>(kSize, 0.5f));
  std::vector<float> values(kSize);
  table.pull(values);
  for (const float value : values) REQUIRE(value == 1.5f);
  CHECK(table.contents().steps == 0);
}
