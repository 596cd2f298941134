#include "ps/tools/stored_rows_text.h"

#include <doctest/doctest.h>

#include "tests/support/ps_tables.h"

using namespace fleetrun::ps;
using fleetrun::tests::dense_table;
using fleetrun::tests::error_of;
using fleetrun::tests::sparse_table;
using fleetrun::tests::text_of;

TEST_CASE("rows are shown by key, with their statistics, or that there is none") {
  const TableConfig table = sparse_table(0, "emb", 2);
  StoredRows rows{2, {true, false}, {}, {1.5f, -0.25f, 0, 0}};
  CHECK(stored_rows_text(table, {7, 8}, rows, false) == "7  1.5 -0.25\n8  no row\n");
  CHECK(stored_rows_text(table, {7, 8}, rows, true) ==
        "{\"key\":7,\"found\":true,\"values\":[1.5,-0.25]}\n{\"key\":8,\"found\":false}\n");
  rows.statistics = {{3, 1, 0.5f, 10, 2}, {}};
  CHECK(stored_rows_text(table, {7, 8}, rows, false) ==
        "7  slot 3, unseen 1 days, delta score 0.5, show 10, click 2: 1.5 -0.25\n8  no row\n");
  CHECK(stored_rows_text(table, {7, 8}, rows, true).find("\"click\":2.0,\"values\"") != std::string::npos);
}

TEST_CASE("a dense table is one line") {
  const StoredRows rows{3, {}, {}, {1, 2, 3}};
  CHECK(stored_rows_text(dense_table(0, "fc", 3), {}, rows, false) == "1 2 3\n");
  CHECK(stored_rows_text(dense_table(0, "fc", 3), {}, rows, true) ==
        "{\"table\":\"fc\",\"values\":[1.0,2.0,3.0]}\n");
}

TEST_CASE("a table that is not there is named, with those that are") {
  const std::vector<TableConfig> tables{sparse_table(0, "emb", 2), dense_table(1, "fc", 3)};
  CHECK(find_table(tables, "fc").id == 1);
  CHECK(text_of([&] { find_table(tables, "emc"); }) == "there is no table 'emc'; did you mean emb?");
  CHECK(error_of([&] { find_table(tables, "emc"); }).hint() == "the tables are emb, fc");
}
