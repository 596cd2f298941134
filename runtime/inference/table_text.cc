#include "runtime/inference/table_text.h"

#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"

namespace fleetrun::inference {
namespace {

using nlohmann::json;
using ps::TableConfig;

/// The kind of that name, among the first `count` of its enumeration.
template <class Kind>
Kind kind_of(const std::string& name, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (to_string(static_cast<Kind>(i)) == name) return static_cast<Kind>(i);
  throw Error(ErrorKind::data, "a table's kind '" + name + "' is not known");
}

template <class Kind>
std::string name_of(Kind kind) {
  return std::string(to_string(kind));
}

// Nothing is trained by it: its numbers are any that a table may have.
ps::UpdateRule rule_of(const std::string& name) {
  using enum ps::UpdateRule::Kind;
  ps::UpdateRule rule;
  rule.kind = kind_of<ps::UpdateRule::Kind>(name, std::size(ps::kUpdateRules));
  if (rule.kind == shared_adagrad || rule.kind == std_adagrad) rule.initial_accumulator = 1.0f;
  return rule;
}

}  // namespace

std::string table_text(const std::vector<TableConfig>& tables) {
  json list = json::array();
  for (const TableConfig& table : tables) {
    json entry = {{"id", table.id},
                  {"name", table.name},
                  {"kind", name_of(table.kind)},
                  {"width", table.width},
                  {"rule", name_of(table.rule.kind)},
                  {"min_block", table.min_block},
                  {"accessor", name_of(table.accessor.kind)},
                  {"embedx_threshold", table.accessor.embedx_threshold},
                  {"zero_init", table.accessor.zero_init},
                  {"admission", name_of(table.admission.kind)},
                  {"initializer",
                   {{"kind", name_of(table.initializer.kind)},
                    {"a", table.initializer.a},
                    {"b", table.initializer.b},
                    {"seed", table.initializer.seed}}}};
    if (table.accessor.embed_rule) entry["embed_rule"] = name_of(table.accessor.embed_rule->kind);
    list.push_back(std::move(entry));
  }
  return json_text(list);
}

std::vector<TableConfig> parse_tables(const std::string& text) {
  std::vector<TableConfig> tables;
  try {
    for (const json& entry : parse_json<json>(text)) {
      TableConfig table;
      table.id = entry.at("id");
      table.name = entry.at("name");
      table.kind = kind_of<TableConfig::Kind>(entry.at("kind"), 2);
      table.width = entry.at("width");
      table.rule = rule_of(entry.at("rule"));
      table.min_block = entry.at("min_block");
      table.accessor.kind = kind_of<ps::Accessor::Kind>(entry.at("accessor"), 3);
      table.accessor.embedx_threshold = entry.at("embedx_threshold");
      table.accessor.zero_init = entry.at("zero_init");
      if (entry.contains("embed_rule")) table.accessor.embed_rule = rule_of(entry.at("embed_rule"));
      table.admission.kind = kind_of<ps::Admission::Kind>(entry.at("admission"), 4);
      const json& initializer = entry.at("initializer");
      table.initializer.kind = kind_of<ps::Initializer::Kind>(initializer.at("kind"), 4);
      table.initializer.a = initializer.at("a");
      table.initializer.b = initializer.at("b");
      table.initializer.seed = initializer.at("seed");
      tables.push_back(std::move(table));
    }
  } catch (const json::exception& error) {
    throw Error(ErrorKind::data, std::string("the list of its tables is damaged: ") + error.what());
  }
  return tables;
}

}  // namespace fleetrun::inference
