#include "dataset/schema/schema.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace fleetrun::dataset {
namespace {

std::string_view type_name(SlotType type) noexcept {
  return type == SlotType::float32 ? "float32" : "int64";
}

const SlotRule& rule_for(const Schema& schema, const Slot& slot, const std::string& name) {
  const auto rule = std::find_if(schema.slots.begin(), schema.slots.end(),
                                 [&](const SlotRule& candidate) { return candidate.name == slot.name; });
  if (rule == schema.slots.end())
    throw Error(ErrorKind::config, "slot '" + slot.name + "' is not in the schema " + name,
                "name it there as the input variable is named");
  if (rule->type != slot.type)
    throw Error(ErrorKind::config, "slot '" + slot.name + "' is " + std::string(type_name(rule->type)) +
                                       " in the schema " + name + ", its variable is " +
                                       std::string(type_name(slot.type)));
  if (slot.dense && static_cast<std::size_t>(slot.width) != rule->values.size())
    throw Error(ErrorKind::config, "slot '" + slot.name + "' has " + std::to_string(rule->values.size()) +
                                       " columns in the schema " + name + ", its variable a width of " +
                                       std::to_string(slot.width));
  return *rule;
}

}  // namespace

std::vector<Slot> slots_of(const Schema& schema) {
  std::vector<Slot> slots;
  for (const SlotRule& rule : schema.slots)
    slots.push_back({.name = rule.name,
                     .type = rule.type,
                     .dense = true,
                     .width = static_cast<std::int64_t>(rule.values.size())});
  return slots;
}

Schema schema_for(const Schema& schema, const std::vector<Slot>& slots, const std::string& name) {
  Schema chosen = schema;
  chosen.slots.clear();
  for (const Slot& slot : slots) chosen.slots.push_back(rule_for(schema, slot, name));
  return chosen;
}

}  // namespace fleetrun::dataset
