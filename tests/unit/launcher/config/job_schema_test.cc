#include "launcher/config/job_schema.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "launcher/config/read_job_file.h"
#include "launcher/model/job_settings.h"

using namespace fleetrun::launcher;
using Json = nlohmann::json;

namespace {

Json keys() {
  return Json::parse(job_schema()).at("properties");
}

Json role() {
  return keys().at("roles").at("items").at("properties");
}

}  // namespace

TEST_CASE("the schema has every setting that a job file takes, and no other") {
  const Json known = keys();
  for (const Setting& row : settings()) {
    CAPTURE(row.key);
    const bool is_taken = row.kind != Kind::refused && !is_said_by_roles(row);
    CHECK(known.contains(std::string(row.key)) == is_taken);
    if (is_taken)
      CHECK(known.at(std::string(row.key)).at("description").get<std::string>().starts_with(row.help));
  }
  CHECK(known.at("max_restarts") == Json{{"$ref", "#/properties/max_restart"}});
}

TEST_CASE("a value is what the help writes for it") {
  const Json known = keys();
  CHECK(known.at("bind").at("enum") == Json{"auto", "none", "core", "numa"});
  CHECK(known.at("with_gloo").at("enum") == Json{"0", 0, "1", 1, "2", 2});
  CHECK(known.at("detach").at("type") == Json{"boolean"});
  CHECK(known.at("log_keep").at("type") == Json{"integer"});
  CHECK(known.at("timeout").at("type") == Json{"string", "number"});
  CHECK(known.at("restart").at("type") == Json{"object", "string", "number"});
  CHECK(known.at("hang_by").at("type") == Json{"array", "string", "number"});
  CHECK(known.at("bad_line").at("anyOf").at(0) == Json{{"enum", {"fail"}}});
  CHECK(known.at("stdin").at("anyOf").at(1) == Json{{"type", {"integer"}}});
}

TEST_CASE("the schema has every key of a role, and a choice in it is one for the reader") {
  const Json known = role();
  CHECK(known.size() == role_keys().size());
  CHECK(known.at("args") == Json::parse(R"({"type": ["array"], "items": {"type": ["string", "number"]},
                                            "description": "arguments of the script"})"));
  CHECK(known.at("ready").at("properties").size() == 3);
  for (const RoleKey& key : role_keys()) {
    for (const std::string& choice : choices_of(key.value)) {
      CAPTURE(choice);
      const Json file = {{"roles", {{{"name", "a"}, {"script", "x"}, {std::string(key.name), choice}}}}};
      CHECK_NOTHROW(parse_job_file(file.dump(), "job.json"));
    }
  }
}

TEST_CASE("a job file may name its schema") {
  const JobFile file = parse_job_file(
      R"({"$schema": "job.schema.json", "roles": [{"name": "a", "script": "x"}]})", "job.json");
  CHECK(file.settings.empty());
  CHECK(file.roles.size() == 1);
}
