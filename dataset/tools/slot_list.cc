#include "dataset/tools/slot_list.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

constexpr const char* kForm =
    "--slots=ids:int64,price:float32[13]: NAME:TYPE is sparse, NAME:TYPE[N] is dense";

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::usage, what, kForm);
}

SlotType type_of(std::string_view type, const std::string& where) {
  if (type == "int64") return SlotType::int64;
  if (type == "float32") return SlotType::float32;
  refuse(where + " has the type '" + printable(type) + "', which is neither int64 nor float32");
}

std::int64_t checked_width(std::int64_t width, const std::string& where) {
  if (width < 1 || width > kMaxSlotWidth)
    refuse(where + " has a width of " + std::to_string(width) + ", which is not from 1 to " +
           std::to_string(kMaxSlotWidth));
  return width;
}

Slot slot_of(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) refuse("the slot '" + printable(text) + "' is not NAME:TYPE");
  Slot slot{.name = text.substr(0, colon)};
  const std::string where = "slot '" + printable(slot.name) + "'";
  std::string_view type = std::string_view(text).substr(colon + 1);
  if (const std::size_t bracket = type.find('['); bracket != std::string_view::npos) {
    const std::string_view inside = type.substr(bracket + 1);
    const auto width =
        inside.ends_with(']') ? parse_integer(inside.substr(0, inside.size() - 1)) : std::nullopt;
    if (!width)
      refuse(where + " has '" + printable(type.substr(bracket)) + "' where a width such as [13] belongs");
    slot.dense = true;
    slot.width = checked_width(*width, where);
    type = type.substr(0, bracket);
  }
  slot.type = type_of(type, where);
  return slot;
}

std::string read_text(const std::string& file) {
  std::ifstream input(file, std::ios::binary);
  std::ostringstream text;
  if (!input || !(text << input.rdbuf()))
    throw Error(ErrorKind::data, printable(file) + " cannot be read: " + std::strerror(errno), kForm);
  return std::move(text).str();
}

Slot slot_of(const nlohmann::json& object, const std::string& where) {
  if (!object.is_object() || !object.contains("name") || !object["name"].is_string() ||
      !object.contains("type") || !object["type"].is_string())
    refuse(where + " is not an object with a name and a type");
  Slot slot{.name = object["name"].get<std::string>()};
  slot.type = type_of(object["type"].get<std::string>(), where);
  for (const auto& [key, value] : object.items()) {
    if (key != "name" && key != "type" && key != "width")
      refuse(where + " has '" + printable(key) + "', which is none of name, type and width");
  }
  if (!object.contains("width")) return slot;
  if (!object["width"].is_number_integer()) refuse(where + " has a width that is not a whole number");
  slot.dense = true;
  slot.width = checked_width(object["width"].get<std::int64_t>(), where);
  return slot;
}

}  // namespace

std::vector<Slot> slots_from_json(std::string_view text, const std::string& name) {
  const nlohmann::json json = read_json<nlohmann::json>(text);
  if (!json.is_array()) refuse(name + " is not a JSON list of slots");
  std::vector<Slot> slots;
  for (const nlohmann::json& object : json)
    slots.push_back(slot_of(object, name + ": slot " + std::to_string(slots.size() + 1)));
  return slots;
}

std::vector<Slot> parse_slots(const std::string& text) {
  if (text.starts_with('@')) return slots_from_json(read_text(text.substr(1)), printable(text.substr(1)));
  std::vector<Slot> slots;
  for (const std::string& part : split(text, ',')) slots.push_back(slot_of(part));
  return slots;
}

std::string to_string(const Slot& slot) {
  std::string text = slot.name + (slot.type == SlotType::int64 ? ":int64" : ":float32");
  return slot.dense ? text + "[" + std::to_string(slot.width) + "]" : text;
}

void check_slots(const std::vector<Slot>& slots) {
  if (slots.empty()) refuse("the slots of the file were not given");
  std::set<std::string_view> names;
  for (const Slot& slot : slots) {
    if (slot.name.empty()) refuse("a slot without a name");
    if (!names.insert(slot.name).second) refuse("slot '" + printable(slot.name) + "' is there twice");
  }
}

}  // namespace fleetrun::dataset
