// The tables of the program that the manual is made of, as JSON for man/pages.py. Nothing is worked out here.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "launcher/config/read_job_file.h"
#include "launcher/model/job_settings.h"
#include "ps/base/table_config.h"
#include "runtime/base/env_variables.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"
#include "runtime/engine/operators/all_operators.h"

namespace {

using namespace fleetrun;
using Json = nlohmann::ordered_json;

Json flag(const launcher::Setting& row) {
  return {{"spellings", launcher::spellings(row)},
          {"variables", split(row.variables, ' ')},
          {"default", launcher::shown_default(row)},
          {"value", row.value},
          {"value_is_optional", row.kind == launcher::Kind::optional_value},
          {"help", row.help},
          {"details", row.details}};
}

Json flag_groups() {
  Json groups = Json::array();
  for (const launcher::GroupTitle& title : launcher::group_titles()) {
    Json flags = Json::array();
    for (const auto& table : {launcher::settings(), launcher::other_flags()}) {
      for (const launcher::Setting& row : table) {
        if (row.group == title.group) flags.push_back(flag(row));
      }
    }
    groups.push_back({{"title", title.text}, {"flags", flags}});
  }
  return groups;
}

Json role_keys() {
  Json keys = Json::array();
  for (const launcher::RoleKey& key : launcher::role_keys())
    keys.push_back({{"name", key.name}, {"value", key.value}, {"help", key.help}, {"details", key.details}});
  return keys;
}

Json variables() {
  Json sections = Json::array();
  for (const EnvSectionTitle& title : env_section_titles()) {
    Json rows = Json::array();
    for (const EnvVariable& variable : env_variables()) {
      if (variable.section != title.section) continue;
      rows.push_back({{"names", split(variable.names, ' ')},
                      {"meaning", variable.meaning},
                      {"details", variable.details}});
    }
    sections.push_back({{"title", title.text}, {"variables", rows}});
  }
  return sections;
}

Json operators() {
  Json groups = Json::array();
  for (const engine::OperatorGroup& group : engine::operator_groups()) {
    Json rows = Json::array();
    for (const engine::OperatorDefinition& row : group.operators) {
      if (row.text.form.empty()) continue;
      rows.push_back({{"type", row.type},
                      {"form", row.text.form},
                      {"meaning", row.text.meaning},
                      {"attributes", row.text.attributes},
                      {"has_gradient", row.gradient != nullptr}});
    }
    groups.push_back({{"title", group.title}, {"about", group.about}, {"operators", rows}});
  }
  return groups;
}

Json update_rules() {
  Json rules = Json::array();
  for (const ps::UpdateRuleRow& row : ps::kUpdateRules)
    rules.push_back({{"name", row.name}, {"formula", row.formula}, {"state", row.state}});
  return rules;
}

}  // namespace

int main() {
  const Json tables = {{"flags", flag_groups()},
                       {"role_keys", role_keys()},
                       {"variables", variables()},
                       {"operators", operators()},
                       {"update_rules", update_rules()}};
  return std::puts(json_text(tables, 1).c_str()) < 0;
}
