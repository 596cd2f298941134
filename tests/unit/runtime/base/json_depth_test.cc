#include "runtime/base/json_depth.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "runtime/base/json_text.h"

using namespace fleetrun;

namespace {

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

}  // namespace

TEST_CASE("foreign JSON may be nested a hundred times") {
  CHECK(read_json<nlohmann::json>(nested(kDeepestJson)).is_array());
  CHECK(read_json<nlohmann::json>(nested(kDeepestJson + 1)).is_discarded());
  CHECK(read_json<nlohmann::json>(nested(200'000)).is_discarded());
  CHECK(read_json<nlohmann::json>("[" + nested(60) + "," + nested(60) + "]").size() == 2);
  const std::string quoted = "{\"a\": \"" + std::string(200, '[') + "\\\"[\"}";
  CHECK(read_json<nlohmann::json>(quoted).at("a").get<std::string>().size() == 202);
  CHECK_THROWS_AS(parse_json<nlohmann::json>(nested(200'000)), nlohmann::json::parse_error);
  CHECK_FALSE(nests_too_deep("]]]]\"[[[["));
}
