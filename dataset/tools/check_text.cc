#include "dataset/tools/check_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "dataset/tools/slot_list.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

using Json = nlohmann::ordered_json;

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::ptrdiff_t at = std::ssize(text) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string counted(std::uint64_t count, const std::string& what) {
  return grouped(count) + " " + what + (count == 1 ? "" : "s");
}

std::string real(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number, std::chars_format::general, 6).ptr};
}

std::string shortest(float number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

bool has_range(const Slot& slot, const SlotSummary& summary) {
  return summary.values > (slot.type == SlotType::float32 ? summary.missing : 0);
}

std::string min_of(const Slot& slot, const SlotSummary& summary) {
  if (!has_range(slot, summary)) return "-";
  return slot.type == SlotType::int64 ? std::to_string(summary.min_int) : shortest(summary.min);
}

std::string greatest_of(const Slot& slot, const SlotSummary& summary) {
  if (!has_range(slot, summary)) return "-";
  return slot.type == SlotType::int64 ? std::to_string(summary.max_int) : shortest(summary.max);
}

bool can_miss(const Slot& slot) {
  return !slot.dense || slot.type == SlotType::float32;
}

using Row = std::array<std::string, 8>;

Row row_of(const Slot& slot, const SlotSummary& summary) {
  std::string each = "-";
  if (summary.rows > 0)
    each = summary.fewest == summary.most
               ? std::to_string(summary.most)
               : std::to_string(summary.fewest) + " to " + std::to_string(summary.most);
  return {printable(to_string(slot)),
          grouped(summary.values),
          each,
          can_miss(slot) ? grouped(summary.missing) : "",
          min_of(slot, summary),
          greatest_of(slot, summary),
          summary.finite > 0 ? real(summary.sum / static_cast<double>(summary.finite)) : "",
          (summary.distinct.is_exact() ? "" : "~") + grouped(summary.distinct.value())};
}

std::string table(const std::vector<Row>& rows) {
  std::array<std::size_t, 8> widths{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    text += row[0] + std::string(widths[0] - row[0].size(), ' ');
    for (std::size_t i = 1; i < row.size(); ++i)
      text += "  " + std::string(widths[i] - row[i].size(), ' ') + row[i];
    text += "\n";
  }
  return text;
}

Json json_of(const Slot& slot, const SlotSummary& summary) {
  Json json{{"name", slot.name}, {"type", slot.type == SlotType::int64 ? "int64" : "float32"}};
  if (slot.dense) json["width"] = slot.width;
  json["rows"] = summary.rows;
  json["values"] = summary.values;
  if (can_miss(slot)) json["missing"] = summary.missing;
  if (summary.rows > 0) json["fewest"] = summary.fewest, json["most"] = summary.most;
  if (has_range(slot, summary) && slot.type == SlotType::int64) {
    json["min"] = summary.min_int;
    json["max"] = summary.max_int;
  } else if (has_range(slot, summary)) {
    const auto number = [](float value) {
      return std::isfinite(value) ? parse_json<Json>(shortest(value)) : Json(shortest(value));
    };
    json["min"] = number(summary.min);
    json["max"] = number(summary.max);
    if (summary.finite > 0)
      json["mean"] = parse_json<Json>(real(summary.sum / static_cast<double>(summary.finite)));
  }
  json["distinct"] = summary.distinct.value();
  json["distinct_is_exact"] = summary.distinct.is_exact();
  return json;
}

}  // namespace

std::string bad_lines_text(const CheckResult& result) {
  std::string text;
  for (const BadLine& bad : result.first_bad) text += printable(bad.file) + ":" + to_string(bad.fault) + "\n";
  if (result.bad_lines > result.first_bad.size())
    text += "and " + counted(result.bad_lines - result.first_bad.size(), "more bad line") + "\n";
  return text;
}

std::string check_text(std::span<const Slot> slots, const CheckResult& result, std::size_t files) {
  std::string text = counted(files, "file") + ", " + counted(result.rows, "row") + ", " +
                     counted(result.bad_lines, "bad line") + "\n\n";
  std::vector<Row> rows{{"slot", "values", "in a row", "missing", "min", "max", "mean", "distinct"}};
  bool is_estimated = false;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    rows.push_back(row_of(slots[i], result.slots[i]));
    is_estimated = is_estimated || !result.slots[i].distinct.is_exact();
  }
  return text + table(rows) + (is_estimated ? "\n~ estimated: the standard error is 0.8 %\n" : "");
}

std::string check_json(std::span<const Slot> slots, const CheckResult& result, std::size_t files) {
  Json json{{"files", files}, {"rows", result.rows}, {"bad_lines", result.bad_lines}};
  json["bad"] = Json::array();
  for (const BadLine& bad : result.first_bad)
    json["bad"].push_back({{"file", bad.file},
                           {"line", bad.fault.line},
                           {"column", bad.fault.column},
                           {"slot", bad.fault.slot},
                           {"what", bad.fault.what}});
  json["slots"] = Json::array();
  for (std::size_t i = 0; i < slots.size(); ++i) json["slots"].push_back(json_of(slots[i], result.slots[i]));
  return json_text(json) + "\n";
}

}  // namespace fleetrun::dataset
