#include "dataset/tools/rows_text.h"

#include <doctest/doctest.h>

#include "dataset/text/multi_slot_parser.h"

using namespace fleetrun::dataset;

namespace {

const std::vector<Slot> kSlots{{.name = "ids"},
                               {.name = "price", .type = SlotType::float32, .dense = true, .width = 2}};

Batch parsed(std::string_view text) {
  Batch batch;
  REQUIRE_FALSE(parse_multi_slot(kSlots, text, batch));
  return batch;
}

}  // namespace

TEST_CASE("a row is its number, and a line for each slot") {
  CHECK(rows_text(kSlots, parsed("2 7 -1 2 0.1 1e-30\n1 18446744073709551615 2 3 inf\n"), 9) ==
        "9  ids    7 -1\n"
        "   price  0.1 1e-30\n"
        "10  ids    -1\n"
        "    price  3 inf\n");
}

TEST_CASE("of many values the first are shown, and how many there are") {
  std::string line = "20";
  for (int i = 0; i < 20; ++i) line += " " + std::to_string(i);
  const std::string text = rows_text(kSlots, parsed(line + " 2 1 2\n"), 1);
  CHECK(text.find(" 14 15 … (20 values)\n") != std::string::npos);
}

TEST_CASE("JSON has every value, and only what JSON can say as a number") {
  CHECK(rows_json(kSlots, parsed("2 7 -1 2 0.1 nan\n1 5 2 3 -inf\n")) ==
        "{\"ids\":[7,-1],\"price\":[0.1,\"nan\"]}\n"
        "{\"ids\":[5],\"price\":[3,\"-inf\"]}\n");
}

TEST_CASE("a name that could do harm to a terminal is shown as text") {
  const std::vector<Slot> slots{{.name = "a\x1b[2J", .dense = true}};
  Batch batch;
  batch.rows = 1;
  batch.slots = {{.floats = {}, .ints = {4}, .offsets = {}}};
  CHECK(rows_text(slots, batch, 1) == "1  a\\x1b[2J  4\n");
}
