#include "ps/tools/stored_rows_text.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"

namespace fleetrun::ps {
namespace {

using Json = nlohmann::ordered_json;

std::string number(float value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", static_cast<double>(value));
  return text;
}

std::string numbers(std::span<const float> values) {
  std::string text;
  for (const float value : values) text += (text.empty() ? "" : " ") + number(value);
  return text;
}

std::string line_of(std::uint64_t key, const StoredRows& rows, std::size_t i) {
  std::string text = std::to_string(key) + "  ";
  if (!rows.found[i]) return text + "no row\n";
  if (!rows.statistics.empty()) {
    const StoredStatistics& now = rows.statistics[i];
    text += "slot " + std::to_string(now.slot) + ", unseen " + std::to_string(now.unseen_days) +
            " days, delta score " + number(now.delta_score) + ", show " + number(now.show) + ", click " +
            number(now.click) + ": ";
  }
  return text + numbers(std::span(rows.values).subspan(i * rows.width, rows.width)) + "\n";
}

Json json_of(std::uint64_t key, const StoredRows& rows, std::size_t i) {
  Json json = {{"key", key}, {"found", bool(rows.found[i])}};
  if (!rows.found[i]) return json;
  if (!rows.statistics.empty()) {
    const StoredStatistics& now = rows.statistics[i];
    json["slot"] = now.slot;
    json["unseen_days"] = now.unseen_days;
    json["delta_score"] = now.delta_score;
    json["show"] = now.show;
    json["click"] = now.click;
  }
  json["values"] = std::span(rows.values).subspan(i * rows.width, rows.width);
  return json;
}

}  // namespace

const TableConfig& find_table(const std::vector<TableConfig>& tables, const std::string& name) {
  const auto found = std::ranges::find(tables, name, &TableConfig::name);
  if (found != tables.end()) return *found;
  std::vector<std::string> names;
  for (const TableConfig& table : tables) names.push_back(table.name);
  const auto meant = nearest(name, names);
  throw Error(ErrorKind::usage,
              "there is no table '" + printable(name) + "'" + (meant ? "; did you mean " + *meant + "?" : ""),
              names.empty() ? "these servers have no tables" : "the tables are " + join(names, ", "));
}

std::string stored_rows_text(const TableConfig& table, const std::vector<std::uint64_t>& keys,
                             const StoredRows& rows, bool json) {
  if (table.kind == TableConfig::Kind::dense)
    return json ? json_text(Json({{"table", table.name}, {"values", rows.values}})) + "\n"
                : numbers(rows.values) + "\n";
  std::string text;
  for (std::size_t i = 0; i < keys.size(); ++i)
    text += json ? json_text(json_of(keys[i], rows, i)) + "\n" : line_of(keys[i], rows, i);
  return text;
}

}  // namespace fleetrun::ps
