#include "dataset/tools/rows_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/base/json_text.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

constexpr std::size_t kShown = 16;

template <class Number>
std::string number_text(Number number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

/// The place of row `row` among the values of its slot.
struct Place {
  std::size_t first;
  std::size_t end;
};

Place place_of(const Slot& slot, const SlotValues& values, std::size_t row) {
  const auto width = static_cast<std::size_t>(slot.width);
  if (slot.dense) return {row * width, (row + 1) * width};
  return {values.offsets[row], values.offsets[row + 1]};
}

std::string value_text(const Slot& slot, const SlotValues& values, std::size_t at) {
  return slot.type == SlotType::int64 ? number_text(values.ints[at]) : number_text(values.floats[at]);
}

std::string values_text(const Slot& slot, const SlotValues& values, std::size_t row) {
  const Place place = place_of(slot, values, row);
  std::string text;
  for (std::size_t at = place.first; at < std::min(place.end, place.first + kShown); ++at)
    text += (at == place.first ? "" : " ") + value_text(slot, values, at);
  const std::size_t count = place.end - place.first;
  return count > kShown ? text + " … (" + std::to_string(count) + " values)" : text;
}

nlohmann::ordered_json value_json(const Slot& slot, const SlotValues& values, std::size_t at) {
  if (slot.type == SlotType::int64) return values.ints[at];
  if (!std::isfinite(values.floats[at])) return number_text(values.floats[at]);
  return parse_json<nlohmann::ordered_json>(number_text(values.floats[at]));  // 0.1 stays 0.1
}

}  // namespace

std::string rows_text(std::span<const Slot> slots, const Batch& batch, std::uint64_t number) {
  std::size_t longest = 0;
  for (const Slot& slot : slots) longest = std::max(longest, printable(slot.name).size());
  std::string text;
  for (std::size_t row = 0; row < batch.rows; ++row) {
    std::string margin = std::to_string(number + row);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const std::string name = printable(slots[i].name);
      text += margin + "  " + name + std::string(longest - name.size() + 2, ' ') +
              values_text(slots[i], batch.slots[i], row) + "\n";
      margin.assign(margin.size(), ' ');
    }
  }
  return text;
}

std::string rows_json(std::span<const Slot> slots, const Batch& batch) {
  std::string text;
  for (std::size_t row = 0; row < batch.rows; ++row) {
    nlohmann::ordered_json object;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      auto values = nlohmann::ordered_json::array();
      const Place place = place_of(slots[i], batch.slots[i], row);
      for (std::size_t at = place.first; at < place.end; ++at)
        values.push_back(value_json(slots[i], batch.slots[i], at));
      object[slots[i].name] = std::move(values);
    }
    text += json_text(object) + "\n";
  }
  return text;
}

}  // namespace fleetrun::dataset
