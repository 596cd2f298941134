#include "dataset/tools/slot_list.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::dataset;

namespace {

const std::vector<Slot> kThree{{.name = "ids"},
                               {.name = "price", .type = SlotType::float32, .dense = true, .width = 13},
                               {.name = "label", .dense = true}};

std::string refusal(const std::string& text) {
  try {
    check_slots(parse_slots(text));
  } catch (const Error& error) {
    CHECK_FALSE(error.hint().empty());
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a width makes a slot dense, none makes it sparse") {
  CHECK(parse_slots("ids:int64,price:float32[13],label:int64[1]") == kThree);
  CHECK(parse_slots("a:b:int64") == std::vector<Slot>{{.name = "a:b"}});
}

TEST_CASE("what a list says is written back as it is read") {
  for (const Slot& slot : kThree) CHECK(parse_slots(to_string(slot)) == std::vector<Slot>{slot});
}

TEST_CASE("slots come from a file of JSON, with any names") {
  const tests::TempDir directory;
  const std::string file = directory.write("slots.json", R"([{"name": "ids", "type": "int64"},
    {"name": "price", "type": "float32", "width": 13}, {"type": "int64", "name": "label", "width": 1}])");
  CHECK(parse_slots("@" + file) == kThree);
  CHECK(slots_from_json(R"([{"name": "a,b:c", "type": "int64"}])", "it")[0].name == "a,b:c");
}

TEST_CASE("what is no list of slots is refused by the slot that is wrong") {
  CHECK(refusal("") == "the slots of the file were not given");
  CHECK(refusal("ids") == "the slot 'ids' is not NAME:TYPE");
  CHECK(refusal(":int64") == "the slot ':int64' is not NAME:TYPE");
  CHECK(refusal("a:int64,") == "the slot '' is not NAME:TYPE");
  CHECK(refusal("ids:int32") == "slot 'ids' has the type 'int32', which is neither int64 nor float32");
  CHECK(refusal("p:float32[0]") == "slot 'p' has a width of 0, which is not from 1 to 2147483648");
  CHECK(refusal("p:float32[x]") == "slot 'p' has '[x]' where a width such as [13] belongs");
  CHECK(refusal("p:float32[13") == "slot 'p' has '[13' where a width such as [13] belongs");
  CHECK(refusal("a:int64,a:float32") == "slot 'a' is there twice");
  CHECK(refusal("@/nowhere/slots.json") == "/nowhere/slots.json cannot be read: No such file or directory");
}

TEST_CASE("JSON that does not describe slots is refused") {
  const auto wrong = [](const char* text) {
    try {
      slots_from_json(text, "s.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(wrong("{}") == "s.json is not a JSON list of slots");
  CHECK(wrong("[") == "s.json is not a JSON list of slots");
  CHECK(wrong("[1]") == "s.json: slot 1 is not an object with a name and a type");
  CHECK(wrong(R"([{"name": "a", "type": "int64"}, {"name": "b"}])") ==
        "s.json: slot 2 is not an object with a name and a type");
  CHECK(wrong(R"([{"name": "a", "type": "int64", "dense": 1}])") ==
        "s.json: slot 1 has 'dense', which is none of name, type and width");
  CHECK(wrong(R"([{"name": "a", "type": "int64", "width": 1.5}])") ==
        "s.json: slot 1 has a width that is not a whole number");
  CHECK(wrong(R"([{"name": "a", "type": "int64", "width": -1}])") ==
        "s.json: slot 1 has a width of -1, which is not from 1 to 2147483648");
}
