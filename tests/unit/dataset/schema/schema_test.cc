#include "dataset/schema/schema.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "dataset/schema/hashes.h"
#include "runtime/base/error.h"

using namespace fleetrun;
using namespace fleetrun::dataset;

namespace {

std::string refusal(const std::string& json) {
  try {
    parse_schema(json, "s.json");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "taken";
}

/// A schema of the columns a and b with this slot.
std::string with_slot(const std::string& slot) {
  return R"({"columns": ["a", "b"], "slots": [)" + slot + "]}";
}

}  // namespace

TEST_CASE("a schema names its columns and what becomes of them") {
  const Schema schema = parse_schema(R"({
    "delimiter": ",", "header": true, "columns": ["label", "I1..I2", "C9..C10"],
    "slots": [
      {"name": "dense", "type": "float32", "columns": ["I1..I2"], "missing": -1,
       "steps": [{"normalise": {"min": [0, -3], "max": 10}}]},
      {"each": ["C9..C10"], "type": "int64", "steps": [{"hash": "fnv1a", "prefix": "{column}=", "modulo": 7}]},
      {"name": "y", "type": "int64", "columns": ["label"]}]})",
                                     "s.json");
  CHECK(schema.delimiter == ',');
  CHECK(schema.header);
  CHECK(schema.columns == std::vector<std::string>{"label", "I1", "I2", "C9", "C10"});
  REQUIRE(schema.slots.size() == 4);
  const SlotRule& dense = schema.slots[0];
  CHECK(dense.type == SlotType::float32);
  REQUIRE(dense.values.size() == 2);
  CHECK(dense.values[1].column == 2);
  CHECK(dense.values[1].missing == -1);
  CHECK(dense.values[1].steps == std::vector{Step{.kind = StepKind::normalise, .offset = -3, .divisor = 13}});
  CHECK(schema.slots[2].name == "C10");
  CHECK(schema.slots[2].values[0].steps ==
        std::vector{Step{.kind = StepKind::hash, .hash = HashKind::fnv1a, .prefix = "C10=", .modulo = 7}});
  CHECK(slots_of(schema) ==
        std::vector<Slot>{{.name = "dense", .type = SlotType::float32, .dense = true, .width = 2},
                          {.name = "C9", .dense = true},
                          {.name = "C10", .dense = true},
                          {.name = "y", .dense = true}});
}

TEST_CASE("columns without names have numbers") {
  const Schema schema =
      parse_schema(R"({"columns": 3, "slots": [{"each": ["2..3"], "type": "int64"}]})", "s.json");
  CHECK(schema.delimiter == '\t');
  CHECK(schema.columns == std::vector<std::string>{"1", "2", "3"});
  CHECK(schema.slots[1].values[0].column == 2);
}

TEST_CASE("a refusal says where and what to write") {
  const std::string slot = R"({"name": "x", "type": "int64", "columns": ["a"])";
  const std::pair<std::string, std::string> table[] = {
      {"{", "s.json: not JSON: byte 2"},
      {"[]", "s.json: an object is wanted, this is []"},
      {R"({"columns": ["a"]})", "s.json: \"slots\" is missing"},
      {R"({"columns": ["a"], "slots": []})", "s.json: slots: no slots"},
      {R"({"columns": ["a"], "slot": []})", "s.json: there is no \"slot\" here; did you mean \"slots\"?"},
      {R"({"columns": ["a", "a"], "slots": []})", "s.json: columns: a name that occurs twice"},
      {R"({"columns": 0, "slots": []})", "s.json: columns: a whole number above 0 is wanted, this is 0"},
      {R"({"columns": ["I3..I1"], "slots": []})",
       "s.json: columns[0]: 'I3..I1' is not a range such as C1..C26"},
      {R"({"columns": ["I1..J3"], "slots": []})",
       "s.json: columns[0]: 'I1..J3' is not a range such as C1..C26"},
      {R"({"delimiter": "ab", "columns": 1, "slots": []})", "s.json: delimiter: \"ab\" cannot part columns"},
      {R"({"delimiter": ".", "columns": 1, "slots": []})", "s.json: delimiter: \".\" cannot part columns"},
      {with_slot(R"({"name": "x", "columns": ["a"]})"), "s.json: slots[0]: \"type\" is missing"},
      {with_slot(R"({"name": "x", "type": "int32", "columns": ["a"]})"),
       "s.json: slots[0].type: 'int32' is neither float32 nor int64"},
      {with_slot(R"({"name": "x", "type": "int64", "columns": ["aa"]})"),
       "s.json: slots[0].columns: there is no column 'aa'; did you mean 'a'?"},
      {with_slot(slot + "}, " + slot + "}"), "s.json: slots[1]: a second slot named 'x'"},
      {with_slot(R"({"each": ["a"], "name": "x", "type": "int64"})"),
       "s.json: slots[0]: \"each\" makes slots named as their columns: no \"name\" and no \"columns\" beside "
       "it"},
      {with_slot(slot + R"(, "missing": 0.5})"),
       "s.json: slots[0].missing: an int64 slot needs a whole number of at most 2^53, this is 0.5"},
      {with_slot(slot + R"(, "steps": ["sqrt"]})"), "s.json: slots[0].steps[0]: \"sqrt\" is not a step"},
      {with_slot(slot + R"(, "steps": ["log"]})"),
       "s.json: slots[0]: the last step makes a fraction, and the slot is int64"},
      {with_slot(slot + R"(, "steps": ["log", {"hash": "crc32"}]})"),
       "s.json: slots[0].steps[1]: this needs text or a whole number, the step before it makes a fraction"},
      {with_slot(slot + R"(, "steps": [{"hash": "md5"}]})"),
       "s.json: slots[0].steps[0].hash: 'md5' is neither crc32 nor fnv1a"},
      {with_slot(slot + R"(, "steps": [{"hash": "crc32", "modulo": -1}]})"),
       "s.json: slots[0].steps[0].modulo: a whole number above 0 is wanted, this is -1"},
      {with_slot(slot + R"(, "steps": [{"bucket": [1, 1]}]})"),
       "s.json: slots[0].steps[0].bucket[1]: boundaries must rise"},
      {with_slot(slot + R"(, "steps": [{"normalise": {"min": 3, "max": 3}}]})"),
       "s.json: slots[0].steps[0].normalise: column 'a' would be divided by 0.000000"},
      {with_slot(slot + R"(, "steps": [{"normalise": {"min": [1, 2], "max": 3}}]})"),
       "s.json: slots[0].steps[0].normalise.min: 2 numbers for 1 columns"},
      {with_slot(slot + R"(, "steps": [{"normalise": {"min": 1, "std": 3}}]})"),
       "s.json: slots[0].steps[0].normalise: either min and max, or mean and std"},
  };
  for (const auto& [json, message] : table) CHECK(refusal(json) == message);
  CHECK_THROWS_WITH_AS(read_schema("/nonexistent.json"), "the schema /nonexistent.json cannot be read",
                       Error);
}

TEST_CASE("a dataset's slots are found by name") {
  const Schema schema = parse_schema(R"({"columns": ["a", "b", "c"], "slots": [
      {"name": "x", "type": "float32", "columns": ["a", "b"]}, {"each": ["c"], "type": "int64"}]})",
                                     "s.json");
  const Schema chosen = schema_for(
      schema, {{.name = "c"}, {.name = "x", .type = SlotType::float32, .dense = true, .width = 2}}, "s.json");
  REQUIRE(chosen.slots.size() == 2);
  CHECK(chosen.slots[0].name == "c");
  CHECK(chosen.slots[1].values.size() == 2);
  CHECK_THROWS_WITH_AS(schema_for(schema, {{.name = "z"}}, "s.json"), "slot 'z' is not in the schema s.json",
                       Error);
  CHECK_THROWS_WITH_AS(schema_for(schema, {{.name = "x"}}, "s.json"),
                       "slot 'x' is float32 in the schema s.json, its variable is int64", Error);
  CHECK_THROWS_WITH_AS(schema_for(schema, {{.name = "c", .dense = true, .width = 4}}, "s.json"),
                       "slot 'c' has 1 columns in the schema s.json, its variable a width of 4", Error);
}

TEST_CASE("hashes are those that other programs compute") {
  CHECK(crc32("") == 0);
  CHECK(crc32("123456789") == 0xCBF43926);  // the check value of every list of CRCs
  CHECK(crc32("C1=05db9164") == crc32("05db9164", crc32("C1=")));
  CHECK(fnv1a("") == 0xcbf29ce484222325);
  CHECK(fnv1a("a") == 0xaf63dc4c8601ec8c);  // draft-eastlake-fnv, test vectors
  CHECK(fnv1a("foobar") == 0x85944171f73967e8);
  CHECK(fnv1a("foobar") == fnv1a("bar", fnv1a("foo")));
}

TEST_CASE("remainders without a division are remainders") {
  for (const std::uint32_t divisor : {1U, 2U, 3U, 10U, 1000001U, 99999989U, 4294967295U}) {
    const Remainder32 remainder(divisor);
    for (const std::uint32_t number :
         {0U, 1U, divisor - 1, divisor, divisor + 1, 123456789U, 4294967294U, 4294967295U})
      CHECK(remainder(number) == number % divisor);
  }
}
