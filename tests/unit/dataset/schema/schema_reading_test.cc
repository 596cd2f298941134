// Text by a schema to MultiSlot text and to batches.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "dataset/schema/field_scan.h"
#include "dataset/schema/schema_parser.h"
#include "dataset/schema/schema_printer.h"
#include "dataset/schema/value_steps.h"

using namespace fleetrun::dataset;

namespace {

/// What one way of reading made of a text: the text or the batch, and the fault.
struct Read {
  std::string text;
  Batch batch;
  std::string fault;
};

/// Gives `text` to a reader in pieces of `piece` bytes;
/// `step` is called after each and says whether to go on.
template <class Reader, class Step>
void feed(Reader& reader, std::string_view text, std::size_t piece, const Step& step) {
  while (!text.empty()) {
    const auto room = reader.room();
    const std::size_t bytes = std::min({room.size(), text.size(), piece});
    std::memcpy(room.data(), text.data(), bytes);
    reader.commit(bytes);
    text.remove_prefix(bytes);
    if (!step()) return;
  }
  reader.end_input();
  step();
}

Read print(const Schema& schema, std::string_view text, std::size_t piece = 1000,
           std::size_t max_line_bytes = 1000) {
  Read read;
  SchemaPrinter printer(schema, max_line_bytes);
  feed(printer, text, piece, [&] {
    const bool good = printer.print();
    read.text += printer.text();
    if (!good) read.fault = to_string(printer.fault());
    return good;
  });
  return read;
}

Read parse(const Schema& schema, std::string_view text, std::size_t piece = 1000) {
  Read read;
  const std::vector<Slot> slots = slots_of(schema);
  SchemaParser parser(schema, slots, 1000);
  parser.begin_batch(read.batch, 1000000);
  feed(parser, text, piece, [&] {
    const bool good = parser.parse() != MultiSlotParser::Outcome::bad;
    if (!good) read.fault = to_string(parser.fault());
    return good;
  });
  parser.end_batch();
  return read;
}

Schema schema_of(const std::string& slots) {
  return parse_schema(R"({"delimiter": ",", "columns": ["a", "b"], "slots": [)" + slots + "]}", "s.json");
}

/// A schema of the one column "a", whose value goes through `steps`.
Schema one(const std::string& type, const std::string& steps = "", const std::string& missing = "") {
  return parse_schema(R"({"delimiter": ",", "columns": ["a"], "slots": [{"name": "x", "type": ")" + type +
                          R"(", "columns": ["a"])" + (missing.empty() ? "" : ", \"missing\": " + missing) +
                          R"(, "steps": [)" + steps + "]}]}",
                      "s.json");
}

}  // namespace

TEST_CASE("a value goes through its steps") {
  struct Case {
    Schema schema;
    std::string field;
    std::string printed;  // without its count
  };
  const std::string hash = R"({"hash": "crc32", "modulo": 1000001})";
  // The right-hand sides are what Python prints for the same.
  const Case table[] = {
      {one("int64"), "17", "17"},
      {one("int64"), "-3", "-3"},
      {one("int64"), "+3", "3"},
      {one("int64"), "-0", "0"},
      {one("int64"), "18446744073709551615", "18446744073709551615"},
      {one("int64"), "-9223372036854775808", "-9223372036854775808"},
      {one("float32"), "17", "17.0"},
      {one("float32"), "-0.5", "-0.5"},
      {one("float32"), ".5", "0.5"},
      {one("float32"), "1e-7", "1e-07"},
      {one("float32"), "123456789012345678", "1.2345678901234568e+17"},
      {one("float32"), "0.1234567890123456789", "0.12345678901234568"},
      {one("float32", R"({"normalise": {"min": -3, "max": 600}})"), "106", "0.18076285240464346"},
      {one("float32", R"({"normalise": {"mean": 2.5, "std": 0.3}})"), "3", "1.6666666666666667"},
      {one("float32", "\"log\""), "0", "0.0"},
      {one("float32", "\"log\""), "9", "2.302585092994046"},
      {one("float32", R"("log", {"normalise": {"min": 0, "max": 2}})"), "9", "1.151292546497023"},
      {one("float32", R"({"bucket": [1, 2]})"), "1", "1.0"},
      {one("int64", R"({"bucket": [0, 10, 100]})"), "-1", "0"},
      {one("int64", R"({"bucket": [0, 10, 100]})"), "10", "2"},
      {one("int64", R"({"bucket": [0, 10, 100]})"), "1e9", "3"},
      {one("int64", "\"square_log\""), "-2", "-2"},
      {one("int64", "\"square_log\""), "2", "2"},
      {one("int64", "\"square_log\""), "3", "1"},
      {one("int64", "\"square_log\""), "1000", "47"},
      {one("int64", R"({"modulo": 7})"), "100", "2"},
      {one("int64", R"({"modulo": 7})"), "-1", "6"},
      {one("int64", R"({"modulo": 7})"), "18446744073709551615", "1"},
      {one("int64", hash), "05db9164", "461658"},
      {one("int64", hash), "", "0"},
      {one("int64", hash), "a longer text", "79301"},
      {one("int64", R"({"hash": "crc32"})"), "05db9164", "1778463436"},
      {one("int64", R"({"hash": "crc32", "prefix": "{column}="})"), "x", "2187512245"},
      {one("int64", R"({"hash": "fnv1a"})"), "foobar", "9625390261332436968"},
      {one("int64", R"({"hash": "fnv1a", "modulo": 1000})"), "foobar", "968"},
      {one("int64", R"("square_log", {"hash": "crc32", "prefix": "SP"})"), "1000", "2547451672"},
      {one("int64", hash, "5"), "", "5"},
      {one("int64", "", "-5"), "", "-5"},
      {one("float32", "\"log\"", "-0.25"), "", "-0.25"},
  };
  for (const Case& test : table) {
    CAPTURE(test.field);
    CAPTURE(test.printed);
    const std::string line = test.field + "\n";
    const bool empty = test.field.empty();  // a line of one empty column is an empty line
    if (empty) {
      ValueSteps steps(test.schema.slots[0].values[0], test.schema.slots[0].type);
      Value value;
      std::string fault;
      REQUIRE(steps.evaluate("", value, fault));
      const double number = test.schema.slots[0].type == SlotType::float32
                                ? value.number
                                : (value.negative ? -1.0 : 1.0) * static_cast<double>(value.magnitude);
      CHECK(number == std::stod(test.printed));
      continue;
    }
    const Read printed = print(test.schema, line);
    CHECK(printed.fault.empty());
    CHECK(printed.text == "1 " + test.printed + "\n");
    // The batch holds what a reader of that text would.
    const Read parsed = parse(test.schema, line);
    Batch expected;
    REQUIRE_FALSE(parse_multi_slot(slots_of(test.schema), printed.text, expected));
    CHECK(parsed.batch == expected);
  }
}

TEST_CASE("what cannot be the value is refused with its place") {
  struct Case {
    Schema schema;
    std::string text;
    std::string fault;
  };
  const Case table[] = {
      {one("int64"), "1\n\n", "2:1: the line is empty"},
      {one("int64"), "1.5\n", "1:1: column 'a': '1.5' is not a whole number"},
      {one("int64"), "18446744073709551616\n",
       "1:1: column 'a': '18446744073709551616' does not fit 64 bits"},
      {one("int64"), "-9223372036854775809\n",
       "1:1: column 'a': '-9223372036854775809' does not fit 64 bits"},
      {one("float32"), "x\n", "1:1: column 'a': 'x' is not a number"},
      {one("float32"), "1 \n", "1:1: column 'a': '1 ' is not a number"},
      {one("float32"), "+-1\n", "1:1: column 'a': '+-1' is not a number"},
      {one("float32"), "nan\n", "1:1: column 'a': 'nan' is not a number"},
      {one("float32"), "1e999\n", "1:1: column 'a': '1e999' does not fit a double"},
      {one("float32"), "1e39\n", "1:1: column 'a': '1e39' becomes too large for float32"},
      {one("float32", "\"log\""), "-1\n", "1:1: column 'a': '-1' is not above -1, as log(1 + x) needs"},
      {one("float32", "\"log\""), "-7\n", "1:1: column 'a': '-7' is not above -1, as log(1 + x) needs"},
      {schema_of(R"({"each": ["a", "b"], "type": "int64"})"), "1,2\n3\n",
       "2:2: 1 column where the schema has 2: 'b' is missing"},
      {schema_of(R"({"each": ["a", "b"], "type": "int64"})"), "1,2,3\n",
       "1:5: 3 columns where the schema has 2"},
      {schema_of(R"({"each": ["a", "b"], "type": "int64"})"), "1,2\r\n10,\r\n",
       "2:4: column 'b': is empty, and a whole number is wanted: give the slot a \"missing\" value"},
      {schema_of(R"({"each": ["b"], "type": "float32"})"), "1,\n",
       "1:3: column 'b': is empty, and a number is wanted: give the slot a \"missing\" value"},
      {one("int64"), "1\n" + std::string(1001, '7') + "\n", "2:1001: the line is longer than 1000 bytes"},
      {one("int64"), "1\n" + std::string(1001, '7'), "2:1001: the line is longer than 1000 bytes"},
  };
  for (const Case& test : table) {
    CAPTURE(test.text);
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1000000}}) {
      CHECK(print(test.schema, test.text, piece).fault == test.fault);
      CHECK(parse(test.schema, test.text, piece).fault == test.fault);
    }
  }
}

TEST_CASE("a header has the schema's names, and is no example") {
  Schema schema = schema_of(R"({"each": ["b"], "type": "int64"})");
  schema.header = true;
  CHECK(print(schema, "a,b\n1,2\n").text == "1 2\n");
  CHECK(print(schema, "a,b\r\n1,2\r\n").text == "1 2\n");
  CHECK(print(schema, ",b\n1,2\n").text == "1 2\n");
  CHECK(print(schema, "a,\n1,2\n").fault == "1:3: column 'b': the header names it ''");
  CHECK(print(schema, "a,c\n1,2\n").fault == "1:3: column 'b': the header names it 'c'");
  CHECK(print(schema, "1\n").fault == "1:2: 1 column where the schema has 2: 'b' is missing");
}

TEST_CASE("the result does not depend on how the bytes are cut") {
  const Schema schema = schema_of(R"({"name": "f", "type": "float32", "columns": ["b", "a"], "missing": 0},
      {"each": ["a"], "type": "int64", "steps": [{"hash": "crc32", "modulo": 1000}]})");
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += std::to_string(i * 7919 % 1000) + "," + (i % 3 == 0 ? "" : std::to_string(i)) +
            (i % 5 == 0 ? "\r\n" : "\n");
  text.pop_back();  // a last line without a line feed counts
  const Read whole = print(schema, text, text.size());
  CHECK(whole.fault.empty());
  CHECK(std::count(whole.text.begin(), whole.text.end(), '\n') == 3000);
  CHECK(whole.text.starts_with("2 0.0 0.0 1 "));
  Batch expected;
  REQUIRE_FALSE(parse_multi_slot(slots_of(schema), whole.text, expected));
  for (const std::size_t piece : {1, 2, 63, 64, 65, 1000}) {
    CHECK(print(schema, text, piece).text == whole.text);
    CHECK(parse(schema, text, piece).batch == expected);
  }
}

TEST_CASE("a bad line can be passed over") {
  const Schema schema = one("int64");
  const std::vector<Slot> slots = slots_of(schema);
  const std::string text = "1\nx\n2\n" + std::string(200000, '7') + "\n3\n\n4";
  for (const std::size_t piece : {std::size_t{1}, std::size_t{50000}, text.size()}) {
    SchemaParser parser(schema, slots, 1000);
    Batch batch;
    parser.begin_batch(batch, 100);
    std::vector<std::uint64_t> bad;
    feed(parser, text, piece, [&] {
      while (parser.parse() == MultiSlotParser::Outcome::bad) {
        bad.push_back(parser.fault().line);
        parser.skip_bad_line();
      }
      return true;
    });
    CHECK(parser.end_batch() == 4);
    CHECK(batch.slots[0].ints == std::vector<std::int64_t>{1, 2, 3, 4});
    CHECK(bad == std::vector<std::uint64_t>{2, 4, 6});
  }
}

TEST_CASE("batches have the rows that were asked for, and offsets where a slot is sparse") {
  const Schema schema = schema_of(R"({"name": "p", "type": "int64", "columns": ["a", "b"]})");
  std::vector<Slot> slots = slots_of(schema);
  slots[0].dense = false;
  SchemaParser parser(schema, slots);
  Batch batch;
  parser.begin_batch(batch, 2);
  const std::string_view text = "1,2\n3,4\n5,6\n";
  std::memcpy(parser.room().data(), text.data(), text.size());
  parser.commit(text.size());
  CHECK(parser.parse() == MultiSlotParser::Outcome::full);
  CHECK(parser.end_batch() == 2);
  CHECK(batch.slots[0].ints == std::vector<std::int64_t>{1, 2, 3, 4});
  CHECK(batch.slots[0].offsets == std::vector<std::size_t>{0, 2, 4});
  parser.begin_batch(batch, 2);
  CHECK(parser.parse() == MultiSlotParser::Outcome::more);
  CHECK(parser.end_batch() == 1);
  CHECK(batch.slots[0].ints == std::vector<std::int64_t>{5, 6});
  CHECK(batch.slots[0].offsets == std::vector<std::size_t>{0, 2});
}

TEST_CASE("doubles become the floats that their text would be read as") {
  // Half way between two floats the shortest text is not the number itself.
  const double middle = 1 + std::ldexp(1.0, -24);
  CHECK(rounded(middle) == std::strtof("1.0000000596046448", nullptr));
  CHECK(rounded(0.1) == 0.1F);
  CHECK(rounded(1e-46) == 0.0F);
  CHECK(rounded(1e-45) == std::numeric_limits<float>::denorm_min());
  CHECK(std::signbit(rounded(-0.0)));
}

TEST_CASE("ends are found in blocks of every length") {
  std::string text;
  for (int i = 0; i < 300; ++i) text += i % 11 == 0 ? '\n' : i % 3 == 0 ? ',' : 'x';
  const std::size_t size = text.size();
  text.append(kScanPadding, ',');  // what lies behind does not count
  for (const std::size_t cut :
       {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{130}, size}) {
    FieldEnds ends;
    find_ends(text.data(), 0, cut, ',', ends);
    find_ends(text.data(), cut, size, ',', ends);
    FieldEnds expected;
    for (std::uint32_t i = 0; i < size; ++i) {
      if (text[i] == '\n') expected.lines.push_back(static_cast<std::uint32_t>(expected.fields.size()));
      if (text[i] == '\n' || text[i] == ',') expected.fields.push_back(i);
    }
    CHECK(ends.fields == expected.fields);
    CHECK(ends.lines == expected.lines);
  }
}
