#include "ps/table/row_layout.h"

#include <doctest/doctest.h>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::sparse_table;

TEST_CASE("a plain row is values, state and steps") {
  const RowLayout layout(sparse_table(0, "t", 3, UpdateRule::Kind::adam));
  CHECK(layout.statistics == 0);
  CHECK(layout.part_count == 1);
  CHECK(layout.parts[0].state == 3);
  CHECK(layout.parts[0].state_floats == 6);
  CHECK(layout.parts[0].steps == 9);
  CHECK(layout.floats == 10);
  CHECK(RowLayout(sparse_table(0, "t", 10, UpdateRule::Kind::adagrad)).floats == 20);
}

TEST_CASE("a row with statistics has the state of its first column apart") {
  TableConfig config = sparse_table(0, "t", 4, UpdateRule::Kind::pow_adam);
  config.accessor.kind = Accessor::Kind::sparse;
  const RowLayout layout(config);
  CHECK(layout.statistics == 4);
  CHECK(layout.part_count == 2);
  CHECK(layout.parts[0].state == 8);
  CHECK(layout.parts[0].state_floats == 4);
  CHECK(layout.parts[1].column == 1);
  CHECK(layout.parts[1].width == 3);
  CHECK(layout.parts[1].state == 12);
  CHECK(layout.parts[1].state_floats == 8);
  CHECK(layout.floats == 20);
  config.accessor.embed_rule = UpdateRule{};
  CHECK(RowLayout(config).floats == 16);
  config.width = 1;
  CHECK(RowLayout(config).part_count == 1);
  CHECK(RowLayout(config).floats == 5);
}
