#include "launcher/config/job_schema.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "launcher/config/read_job_file.h"
#include "launcher/model/job_settings.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"

namespace fleetrun::launcher {
namespace {

using Json = nlohmann::ordered_json;

const Json kWord = {{"type", {"string", "number"}}};

/// The types of one alternative of a value: "N", "SECONDS", "NAME=VALUE,…".
std::vector<std::string> types_of(std::string_view part, bool is_flag) {
  if (part == "BOOL") return {"boolean"};
  if (part == "N" || part == "PORT" || part == "RANK") return {"integer"};
  if (!part.ends_with(",…")) return {"string", "number"};
  std::vector<std::string> types = {part.find('=') == std::string_view::npos ? "array" : "object"};
  if (is_flag) types.insert(types.end(), {"string", "number"});  // as the flag has it: "0,1"
  return types;
}

/// What a key takes whose value the help writes as `value`.
Json schema_of(std::string_view value, bool is_flag) {
  if (value.empty()) return {{"type", {"boolean"}}};
  const std::vector<std::string> choices = choices_of(value);
  Json words = Json::array(), types = Json::array();
  const auto has = [&types](const std::string& type) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  for (const std::string& part : split(value, '|')) {
    if (std::find(choices.begin(), choices.end(), part) != choices.end()) {
      words.push_back(part);
      if (const auto number = parse_integer(part)) words.push_back(*number);
      continue;
    }
    for (const std::string& type : types_of(part, is_flag)) {
      if (!has(type)) types.push_back(type);
    }
  }
  if (types.empty()) return {{"enum", words}};
  Json schema = {{"type", types}};
  if (has("array")) schema["items"] = kWord;
  if (has("object")) schema["additionalProperties"] = kWord;
  if (words.empty()) return schema;
  return {{"anyOf", {Json{{"enum", words}}, schema}}};
}

Json readiness_schema() {
  return {{"type", "object"},
          {"minProperties", 1},
          {"maxProperties", 1},
          {"additionalProperties", false},
          {"properties",
           {{"port", {{"type", {"boolean", "integer", "string"}}}},
            {"log", {{"type", "string"}, {"format", "regex"}}},
            {"descriptor", {{"const", true}}}}}};
}

Json role_schema() {
  Json keys = Json::object();
  for (const RoleKey& key : role_keys()) {
    Json& schema = keys[std::string(key.name)];
    schema = key.name == kReadyKey ? readiness_schema() : schema_of(key.value, false);
    schema["description"] = key.help;
  }
  return {{"type", "object"}, {"required", {"name"}}, {"additionalProperties", false}, {"properties", keys}};
}

}  // namespace

std::string job_schema() {
  Json keys = {{"$schema", {{"type", "string"}, {"description", "this schema, for editors"}}},
               {"roles", {{"type", "array"}, {"minItems", 1}, {"items", role_schema()}}}};
  for (const Setting& row : settings()) {
    if (row.kind == Kind::refused || is_said_by_roles(row)) continue;
    const std::string name(row.key), initial = shown_default(row);
    keys[name] = schema_of(row.value, true);
    keys[name]["description"] = std::string(row.help) + (initial.empty() ? "" : " (default " + initial + ")");
    for (const std::string& alias : split(row.aliases, ' ')) {
      if (!alias.starts_with('-')) keys[alias] = {{"$ref", "#/properties/" + name}};
    }
  }
  const Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                       {"title", "A job of fleetrun"},
                       {"type", "object"},
                       {"required", {"roles"}},
                       {"properties", keys},
                       {"patternProperties", {{"^[a-z]+(-[a-z]+)+$", true}}},  // '-' for '_' is accepted
                       {"additionalProperties", false}};
  return json_text(schema, 2) + "\n";
}

}  // namespace fleetrun::launcher
